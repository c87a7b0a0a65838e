//! Applies one table to one message. At most one rule of a table applies.
//!
//! `find_rule` selects the rule, `translator` passes the message through the stack of tables.

use std::cell::Cell;

use smallvec::{SmallVec, smallvec};

use super::action;
use super::asked::{Asked, Purpose};
use super::choice::{Choice, choose, fitting};
use super::guard::Glance;
use super::message::{self, Message};
use super::outcome::{Happened, Outcome};
use super::pointer::Place;
use super::program::{Layer, PROMPTING};
use super::rewrite::{Rewriter, Trouble};
use super::table::{Answer, Case, Failure, Kinds, Literal, Per, Recall, Rule, Selector, Way};
use super::text::Type;
use super::translate::Translator;
use super::tree::Node;
use crate::jsonrpc::{IdBuf, Kind};

/// Maximum number of messages that a list is split into: each takes more memory than its element,
/// and all of them exist at the same time.
const MOST_PARTS: usize = 4096;

impl Translator {
    /// Applies the rule of `layer` for `message`, if there is one.
    pub(super) fn step<'a>(
        &mut self,
        layer: &'a Layer,
        way: Way,
        mut message: Message<'a>,
        asked: &mut Asked,
        next: &mut Vec<Message<'a>>,
        out: &mut Outcome,
    ) {
        let (rule, case) = match choose(layer, way, self.from(way), &message, asked) {
            Choice::Rule(rule, case) => (rule, Some(case)),
            Choice::Unmatched(rule) => (rule, None),
            Choice::Nothing => return next.push(message),
        };
        let Some(place) = list_to_split(rule, way, &message) else {
            return self.one(layer, way, message, asked, rule, case, next, out);
        };
        let method = message.method.clone();
        if items(place, &mut message).is_some_and(|items| items.len() > MOST_PARTS) {
            return self.trouble(layer, way, rule, message, Trouble::Long, next, out);
        }
        let mut parts = parts(place, message);
        if parts.len() == 1
            && let Some(whole) = parts.pop()
        {
            return self.one(layer, way, whole, asked, rule, case, next, out);
        }
        out.fire(layer, rule, &method);
        if parts.is_empty() {
            out.note(
                Happened::Dropped,
                Some(told(layer, rule)),
                "the list to split is empty",
            );
        }
        for part in parts {
            // The elements of the list may belong to different cases.
            let case = fitting(rule, way, &mut Glance::at(&part.body));
            self.one(layer, way, part, asked, rule, case, next, out);
        }
    }

    /// Applies a rule to one message, with its case if one applies.
    #[expect(clippy::too_many_arguments, reason = "one step has one owner each")]
    fn one<'a>(
        &mut self,
        layer: &'a Layer,
        way: Way,
        message: Message<'a>,
        asked: &mut Asked,
        rule: &'a Rule,
        case: Option<Option<&'a Case>>,
        next: &mut Vec<Message<'a>>,
        out: &mut Outcome,
    ) {
        let Some(case) = case else {
            let rule = Some(told(layer, rule));
            out.note(Happened::Unmatched, rule, &*message.method);
            return next.push(message);
        };
        let mut cases: SmallVec<[&Case; 2]> = smallvec![&rule.base];
        cases.extend(case);
        self.apply(layer, way, message, asked, rule, &cases, next, out);
    }

    #[expect(clippy::too_many_arguments, reason = "one step has one owner each")]
    fn apply<'a>(
        &mut self,
        layer: &'a Layer,
        way: Way,
        message: Message<'a>,
        asked: &mut Asked,
        rule: &'a Rule,
        cases: &[&'a Case],
        next: &mut Vec<Message<'a>>,
        out: &mut Outcome,
    ) {
        let acts = |case: &&Case| !case.actions.is_empty() || !case.emit.is_empty();
        out.depends |= cases.iter().any(acts);
        let original = message.clone();
        let mut message = message;
        // What an upper table has changed is not attributed to this rule.
        let earlier = std::mem::take(&mut message.changed);
        let (had, back) = (next.len(), out.back.len());
        let mut scene = action::Scene {
            way,
            original: &original,
            before: Vec::new(),
            hold: None,
            refuse: None,
        };
        if way == Way::Write {
            self.act(&mut message, asked, cases, &mut scene, out);
        }
        let done = self.rewrite(layer, way, &mut message, asked, cases, rule, out);
        if let Err(trouble) = done {
            self.trouble(layer, way, rule, original, trouble, next, out);
            return;
        }
        if way == Way::Read {
            self.act(&mut message, asked, cases, &mut scene, out);
        }
        if let Some(error) = scene.refuse {
            let trouble = Trouble::Refused(Literal(error));
            self.trouble(layer, way, rule, original, trouble, next, out);
            return;
        }
        self.turn_kind(rule, way, &mut message, asked);
        let mut works = message.changed;
        message.changed |= earlier;
        let emits = |after: bool| {
            cases
                .iter()
                .flat_map(|case| &case.emit)
                .filter(move |emit| emit.way == way && emit.after == after)
        };
        for emit in emits(false) {
            self.emit(layer, emit, cases, &original, asked, next);
        }
        next.append(&mut scene.before);
        let forwards = self.answer(layer, rule, way, &original, cases, out);
        if let Some(why) = scene.hold {
            out.note(Happened::Held, Some(told(layer, rule)), why);
            works = true;
        } else if forwards {
            next.push(message);
        }
        for emit in emits(true) {
            self.emit(layer, emit, cases, &original, asked, next);
        }
        if works || next.len() != had + 1 || out.back.len() != back {
            out.fire(layer, rule, &original.method);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one step has one owner each")]
    fn rewrite<'a>(
        &mut self,
        layer: &'a Layer,
        way: Way,
        message: &mut Message<'a>,
        asked: &Asked,
        cases: &[&'a Case],
        rule: &Rule,
        out: &mut Outcome,
    ) -> Result<(), Trouble> {
        let session = self.session_of(message, asked);
        let this = &*self;
        let recalls = Cell::new(false);
        let recall = |recall: &Recall, key: Option<&str>| {
            recalls.set(true);
            this.recall(recall, key, &session, asked)
        };
        let mut rewriter = Rewriter {
            way,
            shapes: &layer.table.shapes,
            recall: &recall,
            changed: false,
            dropped: Vec::new(),
            unmatched: Vec::new(),
            strangers: 0,
        };
        rewriter.apply(&mut message.body, cases)?;
        message.changed |= rewriter.changed;
        out.depends |= recalls.get();
        for why in rewriter.dropped {
            out.note(Happened::Dropped, Some(told(layer, rule)), why);
        }
        for shape in rewriter.unmatched {
            out.note(Happened::Unmatched, Some(told(layer, rule)), shape);
        }
        if rewriter.strangers > 0 {
            let what = format!("no row names {} of the members", rewriter.strangers);
            out.note(Happened::UnknownMember, Some(told(layer, rule)), what);
        }
        if let Some(error) = cases.iter().find_map(|case| case.fail.as_ref()) {
            message.kind = Kind::Error;
            message.body = Node::raw(&error.0);
            message.changed = true;
        }
        Ok(())
    }

    /// Converts the method's name and the kind of message to those of the target side.
    fn turn_kind(&mut self, rule: &Rule, way: Way, message: &mut Message<'_>, asked: &mut Asked) {
        if let (Selector::Method(names), Some(after)) =
            (&rule.on.what, rule.on.what.names().after(way))
            && names.before(way) != Some(after)
        {
            message.method = after.into();
            message.changed = true;
        }
        if rule.on.kinds != Some(Kinds::DialectAsks) {
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
                message.id = self.mint();
                if asked.purpose == Purpose::Forward {
                    asked.purpose = Purpose::Swallow;
                }
            }
        }
    }

    /// Answers the message if the rule says so. Returns whether it is also forwarded.
    fn answer(
        &mut self,
        layer: &Layer,
        rule: &Rule,
        way: Way,
        original: &Message<'_>,
        cases: &[&Case],
        out: &mut Outcome,
    ) -> bool {
        let stays = rule.on.what.names().after(way).is_none();
        let asks = rule.on.kinds == Some(Kinds::DialectAsks);
        if asks && way == Way::Write {
            return !stays;
        }
        let jsonrpc = self.answers_jsonrpc(way);
        let answer = cases.iter().rev().find_map(|case| case.answer.as_ref());
        if let Some(answer) = answer.filter(|_| original.kind == Kind::Request && (stays || asks)) {
            let (name, value) = match answer {
                Answer::Result(value) => ("result", value),
                Answer::Error(value) => ("error", value),
            };
            let id = original.id.as_id();
            out.back.push(message::answer(id, name, &value.0, jsonrpc));
            out.note(
                Happened::Answered,
                Some(told(layer, rule)),
                &*original.method,
            );
            if name == "result" && way == Way::Write && self.program.watch.any() {
                let body = Node::raw(&value.0);
                let (watch, method) = (self.program.watch, &original.method);
                self.sessions
                    .see(watch, self.peer, Kind::Result, method, None, &body);
            }
        } else if stays {
            let why = format!("{} does not exist in the target protocol", original.method);
            out.note(Happened::Dropped, Some(told(layer, rule)), why.clone());
            if original.kind == Kind::Request {
                out.refuse(&told(layer, rule), original, &why, "go on without it");
            }
        }
        !stays
    }

    /// Handles a message that cannot be translated: it is never forwarded half translated.
    #[expect(clippy::too_many_arguments, reason = "one step has one owner each")]
    fn trouble<'a>(
        &mut self,
        layer: &Layer,
        way: Way,
        rule: &Rule,
        original: Message<'a>,
        trouble: Trouble,
        next: &mut Vec<Message<'a>>,
        out: &mut Outcome,
    ) {
        let request = original.kind == Kind::Request;
        let rule_told = Some(told(layer, rule));
        let (why, remedy) = match trouble {
            Trouble::Blocked(place) => (
                format!("`{place}` leads through a value that is no object"),
                "put an object there, or leave it out",
            ),
            Trouble::Long => (
                format!("its list would become more than {MOST_PARTS} messages"),
                "send it in parts",
            ),
            Trouble::Refused(error) => {
                out.note(Happened::Answered, rule_told, &*original.method);
                out.fire(layer, rule, &original.method);
                if request {
                    let jsonrpc = self.answers_jsonrpc(way);
                    out.back.push(message::answer(
                        original.id.as_id(),
                        "error",
                        &error.0,
                        jsonrpc,
                    ));
                }
                return;
            }
            Trouble::Dropped(why) => {
                out.note(Happened::Dropped, rule_told, why.clone());
                out.fire(layer, rule, &original.method);
                if request {
                    out.refuse(&told(layer, rule), &original, &why, "go on without it");
                } else if original.kind != Kind::Notification {
                    // The request needs an answer.
                    next.push(original);
                }
                return;
            }
        };
        out.note(Happened::Untranslatable, rule_told, why.clone());
        let refuses = rule.failure.unwrap_or(if request {
            Failure::Refuse
        } else {
            Failure::Pass
        });
        match refuses {
            Failure::Refuse if request => {
                out.refuse(&told(layer, rule), &original, &why, remedy);
            }
            _ => next.push(original),
        }
    }

    /// The session whose slots are read; empty if there are no slots by session.
    pub(super) fn session_of(&self, message: &Message<'_>, asked: &Asked) -> String {
        let mut slots = self.program.memory.iter();
        if !slots.any(|memory| memory.slot.per == Per::Session) {
            return String::new();
        }
        let own = message.session().or_else(|| asked.session.clone());
        own.unwrap_or_default()
    }

    pub(super) fn recall(
        &self,
        recall: &Recall,
        key: Option<&str>,
        session: &str,
        asked: &Asked,
    ) -> Option<Node<'static>> {
        if recall.slot == PROMPTING {
            return self.sessions.prompting().map(Node::string);
        }
        let all = &self.program.memory;
        let at = all.iter().position(|memory| memory.name == recall.slot)?;
        let value = match all[at].slot.per {
            Per::Request => {
                let mut held = asked.slots.iter().filter(|(slot, _)| *slot == at);
                held.next_back().map(|(_, value)| &**value)
            }
            Per::Connection => self.memory.recall(at, "", key.unwrap_or_default()),
            Per::Session => self.memory.recall(at, session, key.unwrap_or_default()),
        };
        value.map(|value| Node::made(value.to_vec()))
    }
}

/// The place of the list that the rule splits, if there is one.
fn list_to_split<'a>(rule: &'a Rule, way: Way, message: &Message<'_>) -> Option<&'a Place> {
    let (_, place) = rule.split.as_ref().filter(|(split, _)| *split == way)?;
    let is_list = message.body.look(place)?.kind() == Type::Array;
    is_list.then_some(place)
}

/// The list at a place.
fn items<'m, 'a>(place: &Place, message: &'m mut Message<'a>) -> Option<&'m mut Vec<Node<'a>>> {
    message.body.at(place.names()).and_then(Node::items)
}

/// One message for each element of the list at a place.
fn parts<'a>(place: &Place, mut message: Message<'a>) -> Vec<Message<'a>> {
    message.changed = true;
    // In most cases there is one element, and the message is unchanged.
    let Some(items) = items(place, &mut message).filter(|items| items.len() != 1) else {
        return vec![message];
    };
    let items = std::mem::take(items);
    message.is_cut_into(items.len());
    let part = |item| {
        let mut part = message.clone();
        let put = part.body.put(place.names(), Node::Array(vec![item]));
        put.is_ok().then_some(part)
    };
    items.into_iter().filter_map(part).collect()
}

/// A rule's full name.
pub(super) fn told(layer: &Layer, rule: &Rule) -> String {
    format!("{}/{}", layer.table.name, rule.id)
}
