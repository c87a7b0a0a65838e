//! Applies one table to one message. At most one rule of a table applies.
//!
//! `find_rule` selects the rule, `translate` passes the message through the stack of tables.

use smallvec::{SmallVec, smallvec};

use super::action::ActionContext;
use super::find_rule::{FoundRule, find_case, find_rule};
use super::message::{self, Message};
use super::methods::method_name;
use super::pending::{PendingRequest, Purpose};
use super::pointer::JsonPointer;
use super::program::Layer;
use super::rewrite::{RewriteError, Rewriter};
use super::table::{
    Action, Case, Emit, FixedAnswer, KindChange, Literal, OnFailure, Recall, Rule, Selector, Way,
};
use super::text::JsonType;
use super::translation::{DialectEvent, Translation};
use super::translator::Translator;
use super::tree::Node;
use crate::jsonrpc::{IdBuf, Kind};

/// Maximum number of messages that a list is split into: each takes more memory than its element,
/// and all of them exist at the same time.
const MAX_PARTS: usize = 4096;

/// The application of one rule.
struct Step<'s, 'a> {
    layer: &'a Layer,
    rule: &'a Rule,
    way: Way,
    pending: &'s mut PendingRequest,
    /// The messages for the next layer.
    next: &'s mut Vec<Message<'a>>,
    out: &'s mut Translation,
}

impl Step<'_, '_> {
    /// The rule's full name.
    fn name(&self) -> String {
        format!("{}/{}", self.layer.table.name, self.rule.id)
    }

    fn note(&mut self, what: DialectEvent, detail: impl Into<String>) {
        self.out.note(what, Some(self.name()), detail);
    }

    /// Notes that the rule has changed something.
    fn fire(&mut self, message: &Message<'_>) {
        self.out.fire(self.layer, self.rule, &message.method);
    }

    /// Answers a request that the rule does not let pass.
    fn refuse(&mut self, message: &Message<'_>, why: &str, remedy: &str) {
        self.out.refuse(&self.name(), message, why, remedy);
    }
}

impl Translator {
    /// Applies the rule of `layer` for `message`, if there is one.
    pub(super) fn apply_layer<'a>(
        &mut self,
        layer: &'a Layer,
        way: Way,
        mut message: Message<'a>,
        pending: &mut PendingRequest,
        next: &mut Vec<Message<'a>>,
        out: &mut Translation,
    ) {
        let (rule, case) = match find_rule(layer, way, self.from(way), &message, pending) {
            FoundRule::Rule(rule, case) => (rule, Some(case)),
            FoundRule::Unmatched(rule) => (rule, None),
            FoundRule::Nothing => return next.push(message),
        };
        let mut step = Step {
            layer,
            rule,
            way,
            pending,
            next,
            out,
        };
        let Some(place) = list_to_split(rule, way, &message) else {
            return self.apply_case(&mut step, message, case);
        };
        if items(place, &mut message).is_some_and(|items| items.len() > MAX_PARTS) {
            return self.fail(&mut step, message, RewriteError::TooLong);
        }
        let method = message.method.clone();
        let mut parts = parts(place, message);
        if parts.len() == 1
            && let Some(whole) = parts.pop()
        {
            return self.apply_case(&mut step, whole, case);
        }
        step.out.fire(layer, rule, &method);
        if parts.is_empty() {
            step.note(DialectEvent::Dropped, "the list to split is empty");
        }
        for part in parts {
            // The elements of the list may belong to different cases.
            let case = find_case(rule, way, &part.body);
            self.apply_case(&mut step, part, case);
        }
    }

    /// Applies a rule to one message, with its case if one applies.
    fn apply_case<'a>(
        &mut self,
        step: &mut Step<'_, 'a>,
        message: Message<'a>,
        case: Option<Option<&'a Case>>,
    ) {
        let Some(case) = case else {
            step.note(DialectEvent::Unmatched, &*message.method);
            return step.next.push(message);
        };
        let mut cases: SmallVec<[&Case; 2]> = smallvec![&step.rule.base];
        cases.extend(case);
        self.apply(step, message, &cases);
    }

    fn apply<'a>(&mut self, step: &mut Step<'_, 'a>, mut message: Message<'a>, cases: &[&'a Case]) {
        let way = step.way;
        let original = message.clone();
        // What an upper table has changed is not attributed to this rule.
        let earlier = std::mem::take(&mut message.changed);
        let (had, back) = (step.next.len(), step.out.replies.len());
        let mut context = ActionContext {
            way,
            original: &original,
            before: Vec::new(),
            hold: None,
            refuse: None,
        };
        if way == Way::Write {
            self.run_actions(&mut message, step.pending, cases, &mut context, step.out);
        }
        if let Err(error) = self.rewrite(step, &mut message, cases) {
            return self.fail(step, original, error);
        }
        if way == Way::Read {
            self.run_actions(&mut message, step.pending, cases, &mut context, step.out);
        }
        let ActionContext {
            mut before,
            hold,
            refuse,
            ..
        } = context;
        if let Some(error) = refuse {
            return self.fail(step, original, RewriteError::Refused(Literal(error)));
        }
        self.convert_kind(step, &mut message);
        let mut works = message.changed;
        message.changed |= earlier;
        let emits = |after: bool| {
            let all = cases.iter().flat_map(|case| &case.emit);
            all.filter(move |emit| emit.way == way && emit.after == after)
        };
        for emit in emits(false) {
            self.emit(step, emit, cases, &original);
        }
        step.next.append(&mut before);
        let forwards = self.answer(step, &original, cases);
        if let Some(why) = hold {
            step.note(DialectEvent::Held, why);
            works = true;
        } else if forwards {
            step.next.push(message);
        }
        for emit in emits(true) {
            self.emit(step, emit, cases, &original);
        }
        if works || step.next.len() != had + 1 || step.out.replies.len() != back {
            step.fire(&original);
        }
    }

    fn rewrite<'a>(
        &mut self,
        step: &mut Step<'_, 'a>,
        message: &mut Message<'a>,
        cases: &[&'a Case],
    ) -> Result<(), RewriteError> {
        let session = self.session_of(message, step.pending);
        let pending = &*step.pending;
        let recall =
            |recall: &Recall, key: Option<&str>| self.recall(recall, key, &session, pending);
        let mut rewriter = Rewriter::new(step.way, &step.layer.table.shapes, &recall);
        rewriter.apply(&mut message.body, cases)?;
        let Rewriter {
            changed,
            dropped,
            unmatched,
            unnamed,
            ..
        } = rewriter;
        message.changed |= changed;
        for why in dropped {
            step.note(DialectEvent::Dropped, why);
        }
        for shape in unmatched {
            step.note(DialectEvent::Unmatched, shape);
        }
        if unnamed > 0 {
            let what = format!("no row names {unnamed} of the members");
            step.note(DialectEvent::UnknownMember, what);
        }
        if let Some(error) = cases.iter().find_map(|case| case.fail.as_ref()) {
            message.kind = Kind::Error;
            message.body = Node::raw(&error.0);
            message.changed = true;
        }
        Ok(())
    }

    /// Converts the method's name and the kind of message to those of the target side.
    fn convert_kind(&mut self, step: &mut Step<'_, '_>, message: &mut Message<'_>) {
        let (on, way) = (&step.rule.on, step.way);
        if let (Selector::Method(names), Some(after)) = (&on.what, on.what.names().after(way))
            && names.before(way) != Some(after)
        {
            message.method = method_name(after);
            message.changed = true;
        }
        if on.kinds != Some(KindChange::DialectAsks) {
            return;
        }
        message.changed = true;
        match way {
            Way::Read => {
                message.kind = Kind::Notification;
                message.id = IdBuf::Absent;
            }
            Way::Write => {
                message.kind = Kind::Request;
                message.id = self.new_id();
                if step.pending.purpose == Purpose::Forward {
                    step.pending.purpose = Purpose::Swallow;
                }
            }
        }
    }

    /// Answers the message if the rule requires it. Returns whether it is also forwarded.
    fn answer(&mut self, step: &mut Step<'_, '_>, original: &Message<'_>, cases: &[&Case]) -> bool {
        let (on, way) = (&step.rule.on, step.way);
        let has_no_target = on.what.names().after(way).is_none();
        let dialect_asks = on.kinds == Some(KindChange::DialectAsks);
        if dialect_asks && way == Way::Write {
            return !has_no_target;
        }
        let is_request = original.kind == Kind::Request;
        let answer = cases.iter().rev().find_map(|case| case.answer.as_ref());
        if let Some(answer) = answer.filter(|_| is_request && (has_no_target || dialect_asks)) {
            let (name, value) = match answer {
                FixedAnswer::Result(value) => ("result", value),
                FixedAnswer::Error(value) => ("error", value),
            };
            let (id, jsonrpc) = (original.id.as_id(), self.answers_jsonrpc(way));
            let answer = message::answer(id, name, &value.0, jsonrpc);
            step.out.replies.push(answer);
            step.note(DialectEvent::Answered, &*original.method);
            if name == "result" && way == Way::Write && self.program.tracking.turns {
                let body = Node::raw(&value.0);
                let (tracking, method) = (self.program.tracking, &original.method);
                self.sessions
                    .track(tracking, self.peer, Kind::Result, method, None, &body);
            }
        } else if has_no_target {
            let why = format!("{} does not exist in the target protocol", original.method);
            step.note(DialectEvent::Dropped, why.clone());
            if is_request {
                step.refuse(original, &why, "go on without it");
            }
        }
        !has_no_target
    }

    /// Handles a message that cannot be translated: it is never forwarded half translated.
    fn fail<'a>(&mut self, step: &mut Step<'_, 'a>, original: Message<'a>, error: RewriteError) {
        let is_request = original.kind == Kind::Request;
        let (why, remedy) = match error {
            RewriteError::Blocked(place) => (
                format!("`{place}` leads through a value that is no object"),
                "put an object there, or leave it out",
            ),
            RewriteError::TooLong => (
                format!("its list would become more than {MAX_PARTS} messages"),
                "send it in parts",
            ),
            RewriteError::Refused(error) => {
                step.note(DialectEvent::Answered, &*original.method);
                step.fire(&original);
                if is_request {
                    let (id, jsonrpc) = (original.id.as_id(), self.answers_jsonrpc(step.way));
                    let answer = message::answer(id, "error", &error.0, jsonrpc);
                    step.out.replies.push(answer);
                }
                return;
            }
            RewriteError::Dropped(why) => {
                step.note(DialectEvent::Dropped, why.clone());
                step.fire(&original);
                if is_request {
                    step.refuse(&original, &why, "go on without it");
                } else if original.kind != Kind::Notification {
                    // The request needs an answer.
                    step.next.push(original);
                }
                return;
            }
        };
        step.note(DialectEvent::Untranslatable, why.clone());
        if is_request && step.rule.failure != Some(OnFailure::Pass) {
            step.refuse(&original, &why, remedy);
        } else {
            step.next.push(original);
        }
    }

    /// Makes further messages from the parts of the current one.
    fn emit<'a>(
        &mut self,
        step: &mut Step<'_, 'a>,
        emit: &'a Emit,
        cases: &[&Case],
        original: &Message<'a>,
    ) {
        let mut sources = vec![original.body.clone()];
        if let Some(place) = &emit.each {
            let mut body = original.body.clone();
            let Some(list) = body.get_mut(place.names()) else {
                return;
            };
            let mut actions = cases.iter().flat_map(|case| &case.actions);
            let once = actions.any(|action| *action == Action::OnlyNewText);
            if once && self.was_streamed(step.pending, list) {
                return;
            }
            sources = list.items().cloned().unwrap_or_default();
        }
        let session = self.session_of(original, step.pending);
        for source in sources {
            let pending = &*step.pending;
            let recall =
                |recall: &Recall, key: Option<&str>| self.recall(recall, key, &session, pending);
            let mut rewriter = Rewriter::new(emit.way, &step.layer.table.shapes, &recall);
            if let Ok(body) = rewriter.build(&source, &emit.rows) {
                let made = Message::new(Kind::Notification, IdBuf::Absent, &emit.method, body);
                step.next.push(made);
            }
        }
    }
}

/// The place of the list that the rule splits, if there is one.
fn list_to_split<'a>(rule: &'a Rule, way: Way, message: &Message<'_>) -> Option<&'a JsonPointer> {
    let (_, place) = rule.split.as_ref().filter(|(split, _)| *split == way)?;
    let is_list = message.body.get(place)?.kind() == JsonType::Array;
    is_list.then_some(place)
}

/// The list at a place.
fn items<'m, 'a>(
    place: &JsonPointer,
    message: &'m mut Message<'a>,
) -> Option<&'m mut Vec<Node<'a>>> {
    message.body.get_mut(place.names()).and_then(Node::items)
}

/// One message for each element of the list at a place.
fn parts<'a>(place: &JsonPointer, mut message: Message<'a>) -> Vec<Message<'a>> {
    message.changed = true;
    // In most cases there is one element, and the message is unchanged.
    let Some(items) = items(place, &mut message).filter(|items| items.len() != 1) else {
        return vec![message];
    };
    let items = std::mem::take(items);
    message.divide_size(items.len());
    let part = |item| {
        let mut part = message.clone();
        let put = part.body.put(place.names(), Node::Array(vec![item]));
        put.is_ok().then_some(part)
    };
    items.into_iter().filter_map(part).collect()
}
