//! Applies one table to one message. At most one rule of a table applies.
//!
//! `find_rule` selects the rule, `translator` passes the message through the stack of tables.

use std::cell::Cell;

use smallvec::{SmallVec, smallvec};

use super::action;
use super::find_rule::{FoundRule, find_case, find_rule};
use super::guard::GuardCache;
use super::message::{self, Message};
use super::pending::{PendingRequest, Purpose};
use super::pointer::JsonPointer;
use super::program::{Layer, PROMPTING};
use super::rewrite::{RewriteError, Rewriter};
use super::table::{
    Case, FixedAnswer, KindChange, Literal, OnFailure, Recall, Rule, Selector, SlotScope, Way,
};
use super::text::JsonType;
use super::translation::{DialectEvent, Translation};
use super::translator::Translator;
use super::tree::Node;
use crate::jsonrpc::{IdBuf, Kind};

/// Maximum number of messages that a list is split into: each takes more memory than its element,
/// and all of them exist at the same time.
const MAX_PARTS: usize = 4096;

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
        let Some(place) = list_to_split(rule, way, &message) else {
            return self.apply_case(layer, way, message, pending, rule, case, next, out);
        };
        let method = message.method.clone();
        if items(place, &mut message).is_some_and(|items| items.len() > MAX_PARTS) {
            return self.fail(layer, way, rule, message, RewriteError::TooLong, next, out);
        }
        let mut parts = parts(place, message);
        if parts.len() == 1
            && let Some(whole) = parts.pop()
        {
            return self.apply_case(layer, way, whole, pending, rule, case, next, out);
        }
        out.fire(layer, rule, &method);
        if parts.is_empty() {
            out.note(
                DialectEvent::Dropped,
                Some(rule_name(layer, rule)),
                "the list to split is empty",
            );
        }
        for part in parts {
            // The elements of the list may belong to different cases.
            let case = find_case(rule, way, &mut GuardCache::new(&part.body));
            self.apply_case(layer, way, part, pending, rule, case, next, out);
        }
    }

    /// Applies a rule to one message, with its case if one applies.
    #[expect(clippy::too_many_arguments, reason = "one step has one owner each")]
    fn apply_case<'a>(
        &mut self,
        layer: &'a Layer,
        way: Way,
        message: Message<'a>,
        pending: &mut PendingRequest,
        rule: &'a Rule,
        case: Option<Option<&'a Case>>,
        next: &mut Vec<Message<'a>>,
        out: &mut Translation,
    ) {
        let Some(case) = case else {
            let rule = Some(rule_name(layer, rule));
            out.note(DialectEvent::Unmatched, rule, &*message.method);
            return next.push(message);
        };
        let mut cases: SmallVec<[&Case; 2]> = smallvec![&rule.base];
        cases.extend(case);
        self.apply(layer, way, message, pending, rule, &cases, next, out);
    }

    #[expect(clippy::too_many_arguments, reason = "one step has one owner each")]
    fn apply<'a>(
        &mut self,
        layer: &'a Layer,
        way: Way,
        message: Message<'a>,
        pending: &mut PendingRequest,
        rule: &'a Rule,
        cases: &[&'a Case],
        next: &mut Vec<Message<'a>>,
        out: &mut Translation,
    ) {
        let has_effects = |case: &&Case| !case.actions.is_empty() || !case.emit.is_empty();
        out.is_stateful |= cases.iter().any(has_effects);
        let original = message.clone();
        let mut message = message;
        // What an upper table has changed is not attributed to this rule.
        let earlier = std::mem::take(&mut message.changed);
        let (had, back) = (next.len(), out.replies.len());
        let mut context = action::ActionContext {
            way,
            original: &original,
            before: Vec::new(),
            hold: None,
            refuse: None,
        };
        if way == Way::Write {
            self.run_actions(&mut message, pending, cases, &mut context, out);
        }
        let done = self.rewrite(layer, way, &mut message, pending, cases, rule, out);
        if let Err(error) = done {
            self.fail(layer, way, rule, original, error, next, out);
            return;
        }
        if way == Way::Read {
            self.run_actions(&mut message, pending, cases, &mut context, out);
        }
        if let Some(error) = context.refuse {
            let error = RewriteError::Refused(Literal(error));
            self.fail(layer, way, rule, original, error, next, out);
            return;
        }
        self.convert_kind(rule, way, &mut message, pending);
        let mut works = message.changed;
        message.changed |= earlier;
        let emits = |after: bool| {
            cases
                .iter()
                .flat_map(|case| &case.emit)
                .filter(move |emit| emit.way == way && emit.after == after)
        };
        for emit in emits(false) {
            self.emit(layer, emit, cases, &original, pending, next);
        }
        next.append(&mut context.before);
        let forwards = self.answer(layer, rule, way, &original, cases, out);
        if let Some(why) = context.hold {
            out.note(DialectEvent::Held, Some(rule_name(layer, rule)), why);
            works = true;
        } else if forwards {
            next.push(message);
        }
        for emit in emits(true) {
            self.emit(layer, emit, cases, &original, pending, next);
        }
        if works || next.len() != had + 1 || out.replies.len() != back {
            out.fire(layer, rule, &original.method);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one step has one owner each")]
    fn rewrite<'a>(
        &mut self,
        layer: &'a Layer,
        way: Way,
        message: &mut Message<'a>,
        pending: &PendingRequest,
        cases: &[&'a Case],
        rule: &Rule,
        out: &mut Translation,
    ) -> Result<(), RewriteError> {
        let session = self.session_of(message, pending);
        let this = &*self;
        let recalls = Cell::new(false);
        let recall = |recall: &Recall, key: Option<&str>| {
            recalls.set(true);
            this.recall(recall, key, &session, pending)
        };
        let mut rewriter = Rewriter {
            way,
            shapes: &layer.table.shapes,
            recall: &recall,
            changed: false,
            dropped: Vec::new(),
            unmatched: Vec::new(),
            unnamed: 0,
        };
        rewriter.apply(&mut message.body, cases)?;
        message.changed |= rewriter.changed;
        out.is_stateful |= recalls.get();
        for why in rewriter.dropped {
            out.note(DialectEvent::Dropped, Some(rule_name(layer, rule)), why);
        }
        for shape in rewriter.unmatched {
            out.note(DialectEvent::Unmatched, Some(rule_name(layer, rule)), shape);
        }
        if rewriter.unnamed > 0 {
            let what = format!("no row names {} of the members", rewriter.unnamed);
            out.note(
                DialectEvent::UnknownMember,
                Some(rule_name(layer, rule)),
                what,
            );
        }
        if let Some(error) = cases.iter().find_map(|case| case.fail.as_ref()) {
            message.kind = Kind::Error;
            message.body = Node::raw(&error.0);
            message.changed = true;
        }
        Ok(())
    }

    /// Converts the method's name and the kind of message to those of the target side.
    fn convert_kind(
        &mut self,
        rule: &Rule,
        way: Way,
        message: &mut Message<'_>,
        pending: &mut PendingRequest,
    ) {
        if let (Selector::Method(names), Some(after)) =
            (&rule.on.what, rule.on.what.names().after(way))
            && names.before(way) != Some(after)
        {
            message.method = after.into();
            message.changed = true;
        }
        if rule.on.kinds != Some(KindChange::DialectAsks) {
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
                if pending.purpose == Purpose::Forward {
                    pending.purpose = Purpose::Swallow;
                }
            }
        }
    }

    /// Answers the message if the rule requires it. Returns whether it is also forwarded.
    fn answer(
        &mut self,
        layer: &Layer,
        rule: &Rule,
        way: Way,
        original: &Message<'_>,
        cases: &[&Case],
        out: &mut Translation,
    ) -> bool {
        let has_no_target = rule.on.what.names().after(way).is_none();
        let dialect_asks = rule.on.kinds == Some(KindChange::DialectAsks);
        if dialect_asks && way == Way::Write {
            return !has_no_target;
        }
        let jsonrpc = self.answers_jsonrpc(way);
        let answer = cases.iter().rev().find_map(|case| case.answer.as_ref());
        if let Some(answer) =
            answer.filter(|_| original.kind == Kind::Request && (has_no_target || dialect_asks))
        {
            let (name, value) = match answer {
                FixedAnswer::Result(value) => ("result", value),
                FixedAnswer::Error(value) => ("error", value),
            };
            let id = original.id.as_id();
            out.replies
                .push(message::answer(id, name, &value.0, jsonrpc));
            out.note(
                DialectEvent::Answered,
                Some(rule_name(layer, rule)),
                &*original.method,
            );
            if name == "result" && way == Way::Write && self.program.tracking.any() {
                let body = Node::raw(&value.0);
                let (tracking, method) = (self.program.tracking, &original.method);
                self.sessions
                    .track(tracking, self.peer, Kind::Result, method, None, &body);
            }
        } else if has_no_target {
            let why = format!("{} does not exist in the target protocol", original.method);
            out.note(
                DialectEvent::Dropped,
                Some(rule_name(layer, rule)),
                why.clone(),
            );
            if original.kind == Kind::Request {
                out.refuse(&rule_name(layer, rule), original, &why, "go on without it");
            }
        }
        !has_no_target
    }

    /// Handles a message that cannot be translated: it is never forwarded half translated.
    #[expect(clippy::too_many_arguments, reason = "one step has one owner each")]
    fn fail<'a>(
        &mut self,
        layer: &Layer,
        way: Way,
        rule: &Rule,
        original: Message<'a>,
        error: RewriteError,
        next: &mut Vec<Message<'a>>,
        out: &mut Translation,
    ) {
        let request = original.kind == Kind::Request;
        let full_name = Some(rule_name(layer, rule));
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
                out.note(DialectEvent::Answered, full_name, &*original.method);
                out.fire(layer, rule, &original.method);
                if request {
                    let jsonrpc = self.answers_jsonrpc(way);
                    out.replies.push(message::answer(
                        original.id.as_id(),
                        "error",
                        &error.0,
                        jsonrpc,
                    ));
                }
                return;
            }
            RewriteError::Dropped(why) => {
                out.note(DialectEvent::Dropped, full_name, why.clone());
                out.fire(layer, rule, &original.method);
                if request {
                    out.refuse(&rule_name(layer, rule), &original, &why, "go on without it");
                } else if original.kind != Kind::Notification {
                    // The request needs an answer.
                    next.push(original);
                }
                return;
            }
        };
        out.note(DialectEvent::Untranslatable, full_name, why.clone());
        let refuses = rule.failure.unwrap_or(if request {
            OnFailure::Refuse
        } else {
            OnFailure::Pass
        });
        match refuses {
            OnFailure::Refuse if request => {
                out.refuse(&rule_name(layer, rule), &original, &why, remedy);
            }
            _ => next.push(original),
        }
    }

    /// The session whose slots are read; empty if there are no slots by session.
    pub(super) fn session_of(&self, message: &Message<'_>, pending: &PendingRequest) -> String {
        let mut slots = self.program.memory.iter();
        if !slots.any(|memory| memory.slot.per == SlotScope::Session) {
            return String::new();
        }
        let own = message.session().or_else(|| pending.session.clone());
        own.unwrap_or_default()
    }

    pub(super) fn recall(
        &self,
        recall: &Recall,
        key: Option<&str>,
        session: &str,
        pending: &PendingRequest,
    ) -> Option<Node<'static>> {
        if recall.slot == PROMPTING {
            return self.sessions.prompting().map(Node::string);
        }
        let all = &self.program.memory;
        let at = all.iter().position(|memory| memory.name == recall.slot)?;
        let value = match all[at].slot.per {
            SlotScope::Request => {
                let mut values = pending.slots.iter().filter(|(slot, _)| *slot == at);
                values.next_back().map(|(_, value)| &**value)
            }
            SlotScope::Connection => self.memory.recall(at, "", key.unwrap_or_default()),
            SlotScope::Session => self.memory.recall(at, session, key.unwrap_or_default()),
        };
        value.map(|value| Node::owned(value.to_vec()))
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

/// A rule's full name.
pub(super) fn rule_name(layer: &Layer, rule: &Rule) -> String {
    format!("{}/{}", layer.table.name, rule.id)
}
