//! Parses a table from its file.
//!
//! It is written by hand so that all faults are reported at once, each with its place. `validate`
//! then checks the table as a whole.

use serde_json::Value;

use super::fault::TableFaults;
use super::parser::{Located, Parser};
use super::types::{
    Clue, Example, Expect, Guard, Jsonrpc, KindChange, Loss, MessageFilter, MethodPair, NamedShape,
    NamedSlot, OnFailure, Rule, Selector, Slot, SlotScope, Table,
};
use super::way::Way;
use crate::dialect::pointer::JsonPointer;
use crate::dialect::validate;
use crate::jsonrpc::Side;

/// The parts of a clue, and whether each looks at an answer. An update may be named beside the
/// result of `initialize`, so it comes first.
const LOOKS: [(&str, bool); 5] = [
    ("agentInfo", true),
    ("clientInfo", false),
    ("initialize", false),
    ("update", false),
    ("initialize_result", true),
];

/// The newest `format` that this program reads.
const FORMAT: u64 = 1;

const SIDES: [(&str, Side); 2] = [("client", Side::Client), ("agent", Side::Agent)];
const SCOPES: [(&str, SlotScope); 3] = [
    ("connection", SlotScope::Connection),
    ("session", SlotScope::Session),
    ("request", SlotScope::Request),
];
const FAILURES: [(&str, OnFailure); 2] = [("pass", OnFailure::Pass), ("refuse", OnFailure::Refuse)];
const SPEAKERS: [(&str, Option<Side>); 3] = [
    ("client", Some(Side::Client)),
    ("agent", Some(Side::Agent)),
    ("both", None),
];

impl Table {
    /// Parses one table. `file` is its name in faults.
    ///
    /// # Errors
    /// All faults of the file, in its order.
    pub fn read(file: &str, text: &str) -> Result<Self, TableFaults> {
        let parser = Parser::new(file, text);
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => {
                parser.fault("", format!("this is not JSON: {error}"), "correct it");
                let mut faults = parser.into_faults();
                for fault in &mut faults.0 {
                    fault.line = error.line();
                }
                return Err(faults);
            }
        };
        let at = Located {
            value: &value,
            pointer: String::new(),
        };
        match at.get("format").and_then(|at| at.value.as_u64()) {
            Some(format) if format > FORMAT => {
                let what =
                    format!("format {format} is newer than this program, which reads {FORMAT}");
                parser.fault("/format", what, "this table needs a newer version");
                return Err(parser.into_faults());
            }
            Some(FORMAT) => {}
            _ => parser.fault("/format", "the format is not given", "add `\"format\": 1`"),
        }
        if !parser.object(&at, "") {
            return Err(parser.into_faults());
        }
        let table = parser.table(&at);
        validate::check(&table, &|rule, pointer, what, remedy| {
            parser.set_rule(rule.map(str::to_owned));
            parser.fault(pointer, what, remedy);
            parser.set_rule(None);
        });
        let mut faults = parser.into_faults();
        if faults.0.is_empty() {
            return Ok(table);
        }
        faults.0.sort_by_key(|fault| fault.line);
        Err(faults)
    }
}

impl Parser<'_> {
    fn table(&self, at: &Located<'_>) -> Table {
        let texts = |name| self.list(at, name, |at| self.text(at));
        Table {
            name: self.required_text(at, "dialect"),
            aliases: texts("aliases"),
            title: self.required_text(at, "title"),
            dates: self.optional_text(at, "dates"),
            speaker: self.optional_word(at, "speaker", &SPEAKERS).flatten(),
            extends: texts("extends"),
            reads: texts("reads"),
            detect: self.list(at, "detect", |at| self.clue(at)),
            framing: self.optional_text(at, "framing"),
            jsonrpc: at.get("jsonrpc").map_or(Jsonrpc::Always, |at| {
                if at.value.as_str() == Some("always") {
                    return Jsonrpc::Always;
                }
                self.object(&at, "/properties/jsonrpc/anyOf/1");
                Jsonrpc::Only(self.list(&at, "only", |at| self.text(at)))
            }),
            int_ids: self.optional_word(at, "ids", &[("any", false), ("int32", true)])
                == Some(true),
            params: self.optional_word(at, "params", &[("any", false), ("always", true)])
                == Some(true),
            memory: self.memory(at),
            shapes: self.shapes(at),
            rules: self.list(at, "rules", |at| self.rule(at)),
        }
    }

    fn clue(&self, at: &Located<'_>) -> Option<Clue> {
        if !self.object(at, "/$defs/clue") {
            return None;
        }
        let found: Vec<_> = LOOKS
            .iter()
            .filter_map(|(name, answer)| Some((*name, *answer, at.get(name)?)))
            .collect();
        // What an update means may depend on the result of `initialize`.
        let [(name, answer, part), more @ ..] = &found[..] else {
            let remedy = "add agentInfo, clientInfo, initialize, initialize_result or update";
            self.fault(&at.pointer, "this clue looks at nothing", remedy);
            return None;
        };
        if more
            .iter()
            .any(|(other, ..)| (*name, *other) != ("update", "initialize_result"))
        {
            let remedy = "say all in one guard, as initialize_result with /agentInfo/name";
            self.fault(&at.pointer, "this clue looks at several things", remedy);
        }
        let method = MethodPair::same(match *name {
            "update" => "session/update",
            _ => "initialize",
        });
        let on = match answer {
            true => Selector::Answers(method),
            false => Selector::Method(method),
        };
        let info = |(member, value): (&str, Located<'_>)| {
            let place = JsonPointer::parse(&format!("/{name}/{member}")).ok()?;
            Some((place, Expect::Const(value.literal())))
        };
        let when = match name.ends_with("Info") {
            true => part.members().into_iter().filter_map(info).collect(),
            false => self.guard(part),
        };
        let stated = match &on {
            Selector::Method(_) => self.optional_guard(at, "initialize_result"),
            _ => Guard::new(),
        };
        Some(Clue {
            on,
            when,
            stated,
            version: self.optional_text(at, "version"),
        })
    }

    fn memory(&self, at: &Located<'_>) -> Vec<NamedSlot> {
        let all = at.get("memory").map(|at| at.members()).unwrap_or_default();
        all.into_iter()
            .filter_map(|(name, at)| {
                self.object(&at, "/$defs/slot");
                let per = self.optional_word(&at, "per", &SCOPES)?;
                let slot = Slot {
                    on: self.on(&at)?,
                    when: self.optional_guard(&at, "when"),
                    at: self.optional_pointer(&at, "at")?,
                    by: self.optional_pointer(&at, "by"),
                    per,
                };
                let name = name.to_owned();
                Some(NamedSlot { name, slot })
            })
            .collect()
    }

    fn shapes(&self, at: &Located<'_>) -> Vec<NamedShape> {
        let all = at.get("shapes").map(|at| at.members()).unwrap_or_default();
        all.into_iter()
            .map(|(name, at)| NamedShape {
                name: name.to_owned(),
                cases: self.cases(&at.each()),
            })
            .collect()
    }

    fn rule(&self, at: &Located<'_>) -> Option<Rule> {
        let id = at
            .get("id")
            .and_then(|at| at.value.as_str().map(str::to_owned));
        self.set_rule(id);
        if !self.object(at, "/$defs/rule") {
            return None;
        }
        let on = match at.get("on") {
            Some(on) => {
                self.object(&on, "/$defs/rule/properties/on");
                self.on(&on)
            }
            None => {
                let remedy = "add `\"on\": {\"from\": …, \"method\": …}`";
                self.fault(&at.pointer, "`on` is missing", remedy);
                None
            }
        };
        let split = at.get("split").and_then(|at| {
            self.object(&at, "/$defs/rule/properties/split");
            let read = self
                .optional_pointer(&at, "dialect")
                .map(|place| (Way::Read, place));
            read.or_else(|| Some((Way::Write, self.optional_pointer(&at, "canonical")?)))
        });
        // The rest is parsed even if `on` is faulty, so that all faults are reported at once.
        let nothing = MessageFilter {
            from: Side::Client,
            what: Selector::Method(MethodPair::same("")),
            kinds: None,
        };
        let selects = on.is_some();
        let rule = Rule {
            id: self.required_text(at, "id").into(),
            at: at.pointer.clone(),
            why: self.required_text(at, "why"),
            on: on.unwrap_or(nothing),
            lossy: self.optional_text(at, "lossy"),
            loses: self.loses(at),
            base: self.case(at),
            cases: self.cases(&at.get("cases").map(|at| at.each()).unwrap_or_default()),
            split,
            failure: self.optional_word(at, "failure", &FAILURES),
            examples: self.list(at, "examples", |at| {
                Some(Example {
                    vector: at.literal(),
                    at: at.pointer.clone(),
                })
            }),
        };
        self.set_rule(None);
        selects.then_some(rule)
    }

    fn on(&self, at: &Located<'_>) -> Option<MessageFilter> {
        let from = match at.get("from") {
            Some(at) => self.word(&at, &SIDES),
            None => {
                self.fault(
                    &at.pointer,
                    "`from` is missing",
                    "add \"client\" or \"agent\"",
                );
                None
            }
        };
        let what = if let Some(found) = at.get("method") {
            Selector::Method(self.names(&found)?)
        } else if let Some(found) = at.get("answers") {
            Selector::Answers(self.names(&found)?)
        } else if let Some(found) = at.get("errors_of") {
            Selector::ErrorsOf(self.names(&found)?)
        } else {
            let remedy = "add method, answers or errors_of";
            self.fault(&at.pointer, "this selects no message", remedy);
            return None;
        };
        let kinds = self.optional_word(at, "kind", &[("dialect_asks", KindChange::DialectAsks)]);
        Some(MessageFilter {
            from: from?,
            what,
            kinds,
        })
    }

    fn names(&self, at: &Located<'_>) -> Option<MethodPair> {
        if at.value.is_string() {
            return self.text(at).map(|name| MethodPair::same(&name));
        }
        self.object(at, "/$defs/names/anyOf/1");
        let names = MethodPair {
            dialect: self.optional_text(at, "dialect"),
            canonical: self.optional_text(at, "canonical"),
        };
        if names == MethodPair::default() {
            self.fault(
                &at.pointer,
                "no method is named",
                "name it in one of the columns",
            );
            return None;
        }
        Some(names)
    }

    /// The losses a rule states.
    pub(super) fn loses(&self, at: &Located<'_>) -> Vec<Loss> {
        self.list(at, "loses", |at| {
            if !self.object(at, "/$defs/rule/properties/loses/anyOf/1") {
                return None;
            }
            let loss = Loss {
                when: self.optional_guard(at, "when"),
                at: self.list(at, "at", |at| self.pointer(at)),
            };
            if loss.at.is_empty() {
                let remedy = "add `\"at\": [pointers]`; \"\" is the whole message";
                self.fault(&at.pointer, "this loss is nowhere", remedy);
            }
            Some(loss)
        })
    }
}
