//! Applies one table to one message. At most one rule of a table applies: the first whose guard
//! holds, with the first of its cases whose guard holds.
//!
//! `translate` passes a message through the stack of tables, `rewrite` applies rows, `action`
//! carries out named actions.

use smallvec::{SmallVec, smallvec};

use super::guard::{GuardTest, first_case};
use super::message::Message;
use super::methods::{MethodName, method_name};
use super::pending::{PendingRequest, Purpose};
use super::pointer::JsonPointer;
use super::program::{Layer, Program};
use super::rewrite::{RewriteError, Rewriter};
use super::table::{
    Action, Case, Emit, FixedAnswer, KindChange, OnFailure, Recall, Rule, Selector, Way,
};
use super::text::JsonType;
use super::translation::{DialectEvent, Translation};
use super::translator::Translator;
use super::tree::Node;
use jsonrpc::{IdBuf, Kind};

/// Maximum number of messages that a list is split into: each takes more memory than its element,
/// and all of them exist at the same time.
const MAX_PARTS: usize = 4096;

/// The application of one rule to one message: what actions read and change besides the message.
pub(super) struct Step<'s, 'a> {
    layer: &'a Layer,
    rule: &'a Rule,
    pub(super) way: Way,
    pub(super) pending: &'s mut PendingRequest,
    pub(super) out: &'s mut Translation,
    /// The messages for the next layer.
    next: &'s mut Vec<Message<'a>>,
    /// The message as it was received.
    pub(super) original: Message<'a>,
    /// Messages to send before this one.
    pub(super) before: Vec<Message<'a>>,
    /// Why this message is not forwarded now.
    pub(super) hold: Option<String>,
    /// The error to answer the sender with instead of forwarding the message.
    pub(super) refuse: Option<Vec<u8>>,
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
    fn fire(&mut self) {
        self.out.fire(self.layer, self.rule, &self.original.method);
    }

    /// Answers a request that the rule does not let pass.
    fn refuse(&mut self, why: &str, remedy: &str) {
        let name = self.name();
        self.out.refuse(&name, &self.original, why, remedy);
    }
}

impl Translator {
    /// Applies the rule of a layer for `message`, if there is one.
    pub(super) fn apply_layer<'a>(
        &mut self,
        (program, layer): (&'a Program, usize),
        way: Way,
        mut message: Message<'a>,
        pending: &mut PendingRequest,
        next: &mut Vec<Message<'a>>,
        out: &mut Translation,
    ) {
        let mut unmatched = None;
        let mut chosen = None;
        for rule in self.rules_for(program, layer, way, &message, pending) {
            match find_case(rule, way, &message.body) {
                Some(cases) => {
                    chosen = Some((rule, Some(cases)));
                    break;
                }
                None => unmatched = Some((rule, None)),
            }
        }
        let Some((rule, cases)) = chosen.or(unmatched) else {
            return next.push(message);
        };
        let mut step = Step {
            layer: &program.layers[layer],
            rule,
            way,
            pending,
            out,
            next,
            original: message.clone(),
            before: Vec::new(),
            hold: None,
            refuse: None,
        };
        let Some(place) = rule.split(way) else {
            return self.apply_cases(&mut step, message, cases);
        };
        match items(place, &mut message).map(|items| items.len()) {
            None | Some(1) => self.apply_cases(&mut step, message, cases),
            Some(0..=MAX_PARTS) => {
                step.fire();
                let parts = parts(place, message);
                if parts.is_empty() {
                    step.note(DialectEvent::Dropped, "the list to split is empty");
                }
                for part in parts {
                    // The elements of the list may belong to different cases.
                    let cases = find_case(rule, way, &part.body);
                    self.apply_cases(&mut step, part, cases);
                }
            }
            Some(_) => self.fail(&mut step, RewriteError::TooLong),
        }
    }

    /// The rules of a layer for a message whose own guards hold.
    fn rules_for<'a>(
        &self,
        program: &'a Program,
        layer: usize,
        way: Way,
        message: &Message<'_>,
        pending: &PendingRequest,
    ) -> SmallVec<[&'a Rule; 2]> {
        let answers = message.kind.is_answer();
        let pair = [&pending.dialect, &pending.canonical];
        let names = match (answers, pair[0] == pair[1]) {
            (false, _) => &[&message.method][..],
            (true, true) => &pair[1..],
            (true, false) => &pair,
        };
        let rules = names
            .iter()
            .flat_map(|name| program.rules(layer, way, self.from(way), message.kind, name));
        let mut test = GuardTest::new(&message.body);
        let fits = |rule: &&'a Rule| {
            (!answers || fits_pair(rule, pair)) && test.holds(rule.base.before(way))
        };
        rules.filter(fits).collect()
    }

    /// Applies a rule to one message, with the cases that apply, if any do.
    fn apply_cases<'a>(
        &mut self,
        step: &mut Step<'_, 'a>,
        mut message: Message<'a>,
        cases: Option<Cases<'a>>,
    ) {
        let Some(cases) = cases else {
            step.note(DialectEvent::Unmatched, &*message.method);
            return step.next.push(message);
        };
        let way = step.way;
        step.original = message.clone();
        // What an upper table has changed is not attributed to this rule.
        let earlier = std::mem::take(&mut message.changed);
        let (had, back) = (step.next.len(), step.out.replies.len());
        if way == Way::Write {
            self.run_actions(&cases, &mut message, step);
        }
        if let Err(error) = self.rewrite(step, &mut message, &cases) {
            return self.fail(step, error);
        }
        if way == Way::Read {
            self.run_actions(&cases, &mut message, step);
        }
        if let Some(error) = step.refuse.take() {
            return self.fail(step, RewriteError::Refused(error));
        }
        self.convert_kind(step, &mut message);
        let mut works = message.changed;
        message.changed |= earlier;
        let emits = |after: bool| {
            let all = cases.iter().flat_map(|case| &case.emit);
            all.filter(move |emit| emit.way == way && emit.is_after() == after)
        };
        for emit in emits(false) {
            self.emit(step, emit, &cases);
        }
        step.next.append(&mut step.before);
        let forwards = self.answer(step, &cases);
        if let Some(why) = step.hold.take() {
            step.note(DialectEvent::Held, why);
            works = true;
        } else if forwards {
            step.next.push(message);
        }
        for emit in emits(true) {
            self.emit(step, emit, &cases);
        }
        if works || step.next.len() != had + 1 || step.out.replies.len() != back {
            step.fire();
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
            message.body = Node::owned(error.json());
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
                message.id = IdBuf::default();
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
    fn answer(&mut self, step: &mut Step<'_, '_>, cases: &[&Case]) -> bool {
        let (on, way) = (&step.rule.on, step.way);
        let has_no_target = on.what.names().after(way).is_none();
        let dialect_asks = on.kinds == Some(KindChange::DialectAsks);
        if dialect_asks && way == Way::Write {
            return !has_no_target;
        }
        let is_request = step.original.kind == Kind::Request;
        let method = step.original.method.clone();
        let answer = cases.iter().rev().find_map(|case| case.answer.as_ref());
        if let Some(answer) = answer.filter(|_| is_request && (has_no_target || dialect_asks)) {
            let (kind, value) = match answer {
                FixedAnswer::Result(value) => (Kind::Result, value.0.to_vec()),
                FixedAnswer::Error(error) => (Kind::Error, error.json()),
            };
            self.reply(step, kind, &value);
            step.note(DialectEvent::Answered, &*method);
            if kind == Kind::Result && way == Way::Write && self.program.follows_sessions {
                let body = Node::raw(&value);
                self.sessions
                    .track(self.peer, Kind::Result, &method, None, &body);
            }
        } else if has_no_target {
            let why = format!("{method} does not exist in the target protocol");
            step.note(DialectEvent::Dropped, why.clone());
            if is_request {
                step.refuse(&why, "go on without it");
            }
        }
        !has_no_target
    }

    /// Answers the sender of the message.
    pub(super) fn reply(&self, step: &mut Step<'_, '_>, kind: Kind, value: &[u8]) {
        let answer = Message::new(kind, step.original.id.clone(), "", Node::raw(value));
        let answer = answer.frame(self.answers_jsonrpc(step.way));
        step.out.replies.push(answer);
    }

    /// Handles a message that cannot be translated: it is never forwarded half translated.
    fn fail(&mut self, step: &mut Step<'_, '_>, error: RewriteError) {
        let kind = step.original.kind;
        let is_request = kind == Kind::Request;
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
                step.note(DialectEvent::Answered, &*step.original.method.clone());
                step.fire();
                if is_request {
                    self.reply(step, Kind::Error, &error);
                }
                return;
            }
            RewriteError::Dropped(why) => {
                step.note(DialectEvent::Dropped, why.clone());
                step.fire();
                if is_request {
                    step.refuse(&why, "go on without it");
                } else if kind != Kind::Notification {
                    // The request needs an answer.
                    step.next.push(step.original.clone());
                }
                return;
            }
        };
        step.note(DialectEvent::Untranslatable, why.clone());
        if is_request && step.rule.failure != Some(OnFailure::Pass) {
            step.refuse(&why, remedy);
        } else {
            step.next.push(step.original.clone());
        }
    }

    /// Makes further messages from the parts of the current one.
    fn emit<'a>(&mut self, step: &mut Step<'_, 'a>, emit: &'a Emit, cases: &[&Case]) {
        let mut body = step.original.body.clone();
        let mut sources = vec![body.clone()];
        if let Some(place) = &emit.each {
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
        let session = self.session_of(&step.original, step.pending);
        for source in sources {
            let pending = &*step.pending;
            let recall =
                |recall: &Recall, key: Option<&str>| self.recall(recall, key, &session, pending);
            let mut rewriter = Rewriter::new(emit.way, &step.layer.table.shapes, &recall);
            if let Ok(body) = rewriter.build(&source, &emit.rows) {
                let made = Message::new(Kind::Notification, IdBuf::default(), &emit.method, body);
                step.next.push(made);
            }
        }
    }
}

/// The base of a rule and one of its cases.
type Cases<'a> = SmallVec<[&'a Case; 2]>;

/// The base of a rule and its case that applies to a message; `None` where none of its cases does.
fn find_case<'a>(rule: &'a Rule, way: Way, body: &Node<'_>) -> Option<Cases<'a>> {
    let mut cases: Cases<'_> = smallvec![&rule.base];
    if !rule.cases.is_empty() {
        cases.push(first_case(&rule.cases, way, body)?);
    }
    Some(cases)
}

/// Whether a rule for answers applies to the answer to this pair of methods.
fn fits_pair(rule: &Rule, [dialect, canonical]: [&MethodName; 2]) -> bool {
    let names = rule.on.what.names();
    let fits = |name: &Option<String>, own: &str| {
        name.as_deref()
            .is_none_or(|name| name == "*" || name == own || *name == **canonical)
    };
    fits(&names.dialect, dialect) && fits(&names.canonical, canonical)
}

/// The list at a place.
fn items<'m, 'a>(
    place: &JsonPointer,
    message: &'m mut Message<'a>,
) -> Option<&'m mut Vec<Node<'a>>> {
    let is_list = message.body.get(place)?.kind() == JsonType::Array;
    let list = message.body.get_mut(place.names()).filter(|_| is_list);
    list.and_then(Node::items)
}

/// One message for each element of the list at a place.
fn parts<'a>(place: &JsonPointer, mut message: Message<'a>) -> Vec<Message<'a>> {
    message.changed = true;
    let items = items(place, &mut message)
        .map(std::mem::take)
        .unwrap_or_default();
    message.size /= items.len().max(1);
    let part = |item| {
        let mut part = message.clone();
        let put = part.body.put(place.names(), Node::Array(vec![item]));
        put.is_ok().then_some(part)
    };
    items.into_iter().filter_map(part).collect()
}
