//! One message meets one table.
//!
//! At most one rule of a table is for a message: its guards say which. Not here: the stack of
//! tables (see `translate`).

use super::action;
use super::asked::{Asked, Purpose};
use super::message::{self, Message};
use super::outcome::{Happened, Outcome};
use super::pointer::Place;
use super::program::{Layer, PROMPTING};
use super::rewrite::{Rewriter, Trouble, holds};
use super::table::{
    Action, Answer, Case, Emit, Failure, Kinds, Per, Recall, Row, Rule, Selector, Way,
};
use super::text;
use super::translate::Translator;
use super::tree::Node;
use crate::wire::{IdBuf, Kind};

impl Translator {
    /// Applies the rule of `layer` that is for `message`, if there is one.
    pub(super) fn step<'a>(
        &mut self,
        layer: &'a Layer,
        way: Way,
        mut message: Message<'a>,
        asked: &mut Asked,
        next: &mut Vec<Message<'a>>,
        out: &mut Outcome,
    ) {
        let from = self.from(way);
        let answers = matches!(message.kind, Kind::Result | Kind::Error);
        let pair = (asked.dialect.to_string(), asked.canonical.to_string());
        let names: &[&str] = if answers {
            if pair.0 == pair.1 {
                &[&pair.1]
            } else {
                &[&pair.0, &pair.1]
            }
        } else {
            &[&message.method.clone()]
        };
        let mut unmatched = None;
        for name in names {
            let rules = layer.rules(way, from, message.kind, name);
            for rule in rules.filter(|rule| !answers || fits_pair(rule, &pair)) {
                if !rule.base.works(way) || !holds(&message.body, rule.base.before(way)) {
                    continue;
                }
                let works =
                    |case: &&Case| case.works(way) && holds(&message.body, case.before(way));
                match rule.cases.iter().find(works) {
                    None if !rule.cases.is_empty() => unmatched = Some(rule),
                    case => {
                        let mut cases = vec![&rule.base];
                        cases.extend(case);
                        self.split(layer, way, message, asked, rule, &cases, next, out);
                        return;
                    }
                }
            }
        }
        if let Some(rule) = unmatched {
            out.note(
                Happened::Unmatched,
                Some(told(layer, rule)),
                message.method.clone(),
            );
        }
        message.changed |= false;
        next.push(message);
    }

    /// One message per element, where the rule splits.
    #[expect(clippy::too_many_arguments, reason = "one step has one owner each")]
    fn split<'a>(
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
        let place = rule.split.as_ref().filter(|(split, _)| *split == way);
        let mut body = message.body.clone();
        let items = place.and_then(|(_, place)| body.at(place.names())?.items().cloned());
        let (Some((_, place)), Some(items)) = (place, items) else {
            self.apply(layer, way, message, asked, rule, cases, next, out);
            return;
        };
        if items.len() != 1 {
            out.fire(layer, rule, &message.method);
        }
        if items.is_empty() {
            out.note(
                Happened::Dropped,
                Some(told(layer, rule)),
                "the list to split is empty",
            );
        }
        for item in items {
            let mut part = message.clone();
            part.changed = true;
            part.body = body.clone();
            if part
                .body
                .put(place.names(), Node::Array(vec![item]))
                .is_ok()
            {
                self.apply(layer, way, part, asked, rule, cases, next, out);
            }
        }
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
        let original = message.clone();
        let mut message = message;
        // What an upper table has changed is not this rule's doing.
        let earlier = std::mem::take(&mut message.changed);
        let (had, back) = (next.len(), out.back.len());
        let mut scene = action::Scene {
            way,
            original: &original,
            before: Vec::new(),
            hold: None,
        };
        if way == Way::Write {
            self.act(&mut message, asked, cases, &mut scene, out);
        }
        let done = self.rewrite(layer, way, &mut message, asked, cases, rule, out);
        if let Err(trouble) = done {
            self.trouble(layer, rule, original, trouble, next, out);
            return;
        }
        if way == Way::Read {
            self.act(&mut message, asked, cases, &mut scene, out);
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
        let recall = |recall: &Recall, key: Option<&str>| this.recall(recall, key, &session, asked);
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
        for why in rewriter.dropped {
            out.note(Happened::Dropped, Some(told(layer, rule)), why);
        }
        for shape in rewriter.unmatched {
            out.note(Happened::Unmatched, Some(told(layer, rule)), shape);
        }
        if rewriter.strangers > 0 {
            let what = format!("{} of its members no row names", rewriter.strangers);
            out.note(Happened::UnknownMember, Some(told(layer, rule)), what);
        }
        if let Some(error) = cases.iter().find_map(|case| case.fail.as_ref()) {
            message.kind = Kind::Error;
            message.body = Node::raw(&error.0);
            message.changed = true;
        }
        Ok(())
    }

    /// The method's name and the kind of message on the side that is reached.
    fn turn_kind(&mut self, rule: &Rule, way: Way, message: &mut Message<'_>, asked: &mut Asked) {
        if let (Selector::Method(names), Some(after)) =
            (&rule.on.what, rule.on.what.names().after(way))
            && names.before(way) != Some(after)
        {
            message.method = after.to_owned();
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

    /// Answers by itself, if the rule says so. Returns whether the message also goes on.
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
                original.method.clone(),
            );
            if name == "result" && way == Way::Write && self.program.sessions {
                let body = Node::raw(&value.0);
                self.sessions
                    .see(self.peer, Kind::Result, &original.method, None, &body);
            }
        } else if stays {
            let why = format!("{} does not exist there", original.method);
            out.note(Happened::Dropped, Some(told(layer, rule)), why.clone());
            if original.kind == Kind::Request {
                out.refuse(&told(layer, rule), original, &why, "go on without it");
            }
        }
        !stays
    }

    /// A further message, made of the parts of the one at hand.
    fn emit<'a>(
        &mut self,
        layer: &'a Layer,
        emit: &'a Emit,
        cases: &[&Case],
        original: &Message<'a>,
        asked: &Asked,
        next: &mut Vec<Message<'a>>,
    ) {
        let mut sources = vec![original.body.clone()];
        if let Some(place) = &emit.each {
            let mut body = original.body.clone();
            let Some(list) = body.at(place.names()) else {
                return;
            };
            let once = cases
                .iter()
                .any(|case| case.actions.contains(&Action::OnlyNewText));
            if once && self.was_said(asked, list) {
                return;
            }
            sources = list.items().cloned().unwrap_or_default();
        }
        let session = self.session_of(original, asked);
        for source in sources {
            let this = &*self;
            let recall =
                |recall: &Recall, key: Option<&str>| this.recall(recall, key, &session, asked);
            let mut rewriter = Rewriter {
                way: emit.way,
                shapes: &layer.table.shapes,
                recall: &recall,
                changed: false,
                dropped: Vec::new(),
                unmatched: Vec::new(),
                strangers: 0,
            };
            if let Ok(body) = rewriter.build(&source, &emit.rows) {
                let made = Message::made(Kind::Notification, IdBuf::Absent, &emit.method, body);
                next.push(made);
            }
        }
    }

    /// What becomes of a message that cannot be translated: never half of it.
    fn trouble<'a>(
        &mut self,
        layer: &Layer,
        rule: &Rule,
        original: Message<'a>,
        trouble: Trouble,
        next: &mut Vec<Message<'a>>,
        out: &mut Outcome,
    ) {
        let request = original.kind == Kind::Request;
        let rule_told = Some(told(layer, rule));
        match trouble {
            Trouble::Blocked(place) => {
                let why = format!("`{place}` leads through a value that is no object");
                let remedy = "put an object there, or leave it out";
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
            Trouble::Refused(error) => {
                out.note(Happened::Answered, rule_told, original.method.clone());
                out.fire(layer, rule, &original.method);
                if request {
                    let way = if layer.table.rules.is_empty() {
                        Way::Read
                    } else {
                        Way::Write
                    };
                    let jsonrpc = self.answers_jsonrpc(way);
                    out.back.push(message::answer(
                        original.id.as_id(),
                        "error",
                        &error.0,
                        jsonrpc,
                    ));
                }
            }
            Trouble::Dropped(why) => {
                out.note(Happened::Dropped, rule_told, why.clone());
                out.fire(layer, rule, &original.method);
                if request {
                    out.refuse(&told(layer, rule), &original, &why, "go on without it");
                } else if original.kind != Kind::Notification {
                    // Whoever asked is owed an answer.
                    next.push(original);
                }
            }
        }
    }

    pub(super) fn session_of(&self, message: &Message<'_>, asked: &Asked) -> String {
        let json = message.body.json();
        let own = text::member(&json, "sessionId").and_then(text::string);
        own.map(std::borrow::Cow::into_owned)
            .or_else(|| asked.session.clone())
            .unwrap_or_default()
    }

    fn recall(
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

impl<'a> Rewriter<'a, '_> {
    /// A new value made of another one by rows.
    fn build(&mut self, source: &Node<'a>, rows: &'a [Row]) -> Result<Node<'a>, Trouble> {
        let mut made = Node::Absent;
        for row in rows {
            self.build_row(source, row, &mut made)?;
        }
        Ok(made)
    }

    fn build_row(
        &mut self,
        source: &Node<'a>,
        row: &'a Row,
        made: &mut Node<'a>,
    ) -> Result<(), Trouble> {
        let whole = Place::parse("").expect("the empty pointer parses");
        let after = row
            .after(self.way)
            .cloned()
            .unwrap_or_else(|| whole.clone());
        // The row's own column is moved aside so that its value cannot meet what is built.
        let mut scope = Node::object(Vec::new());
        if let Some(before) = row.before(self.way) {
            let mut source = source.clone();
            if let Some(value) = source.at(before.names()) {
                let value = value.clone();
                let blocked = |_| Trouble::Blocked(before.to_string());
                if before.names().is_empty() {
                    scope = value;
                } else {
                    scope.put(before.names(), value).map_err(blocked)?;
                }
            } else if row.fill.is_none() {
                return Ok(());
            }
        }
        self.rows(&mut scope, std::slice::from_ref(row))?;
        let Some(value) = scope.take(after.names()) else {
            return Ok(());
        };
        made.put(after.names(), value)
            .map_err(|_| Trouble::Blocked(after.to_string()))
    }
}

/// Whether a rule for answers is for the answer to this pair of methods.
fn fits_pair(rule: &Rule, pair: &(String, String)) -> bool {
    let names = rule.on.what.names();
    let fits = |name: &Option<String>, own: &str| {
        name.as_deref()
            .is_none_or(|name| name == "*" || name == own || name == pair.1)
    };
    fits(&names.dialect, &pair.0) && fits(&names.canonical, &pair.1)
}

/// A rule's full name.
pub(super) fn told(layer: &Layer, rule: &Rule) -> String {
    format!("{}/{}", layer.table.name, rule.id)
}
