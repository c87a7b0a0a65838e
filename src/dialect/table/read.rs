//! Parses a table from its file.
//!
//! It is written by hand so that all faults are reported at once, each with its place. `validate`
//! then checks the table as a whole.

use serde_json::Value;

use super::fault::TableFaults;
use super::parser::{Located, Parser};
use super::rows::CASE;
use super::types::{
    Clue, Example, Jsonrpc, KindChange, MessageFilter, MethodPair, NamedShape, NamedSlot,
    OnFailure, Rule, Selector, Slot, SlotScope, Table, Way,
};
use crate::dialect::validate;
use crate::jsonrpc::Side;

/// The newest `format` that this program reads.
pub const FORMAT: u64 = 1;

const TABLE: [&str; 20] = [
    "$schema", "format", "dialect", "aliases", "title", "why", "dates", "speaker", "extends",
    "reads", "detect", "framing", "jsonrpc", "ids", "params", "memory", "shapes", "rules",
    "source", "notes",
];

const RULE: [&str; 11] = [
    "id", "on", "cases", "split", "failure", "examples", "loses", "source", "seen", "until",
    "notes",
];

const SIDES: [(&str, Side); 2] = [("client", Side::Client), ("agent", Side::Agent)];

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
        if !parser.object(&at, &TABLE) {
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
            speaker: at
                .get("speaker")
                .and_then(|at| {
                    self.word(
                        &at,
                        &[SIDES[0], SIDES[1]]
                            .map(|(w, s)| (w, Some(s)))
                            .into_iter()
                            .chain([("both", None)])
                            .collect::<Vec<_>>(),
                    )
                })
                .flatten(),
            extends: texts("extends"),
            reads: texts("reads"),
            detect: self.list(at, "detect", |at| self.clue(at)),
            framing: self.optional_text(at, "framing"),
            jsonrpc: at.get("jsonrpc").map_or(Jsonrpc::Always, |at| {
                if at.value.as_str() == Some("always") {
                    return Jsonrpc::Always;
                }
                self.object(&at, &["only"]);
                Jsonrpc::Only(self.list(&at, "only", |at| self.text(at)))
            }),
            int_ids: at
                .get("ids")
                .and_then(|at| self.word(&at, &[("any", false), ("int32", true)]))
                .unwrap_or(false),
            params: at
                .get("params")
                .and_then(|at| self.word(&at, &[("any", false), ("always", true)]))
                .unwrap_or(false),
            memory: at
                .get("memory")
                .map(|at| self.memory(&at))
                .unwrap_or_default(),
            shapes: at
                .get("shapes")
                .map(|at| self.shapes(&at))
                .unwrap_or_default(),
            rules: self.list(at, "rules", |at| self.rule(at)),
        }
    }

    fn clue(&self, at: &Located<'_>) -> Option<Clue> {
        let known = [
            "agentInfo",
            "clientInfo",
            "version",
            "initialize",
            "initialize_result",
            "update",
            "why",
        ];
        if !self.object(at, &known) {
            return None;
        }
        let looks = [
            "agentInfo",
            "clientInfo",
            "initialize",
            "initialize_result",
            "update",
        ];
        let mut named: Vec<&str> = looks
            .into_iter()
            .filter(|name| at.get(name).is_some())
            .collect();
        // What an update means may depend on the result of `initialize`.
        if named.contains(&"update") {
            named.retain(|name| *name != "initialize_result");
        }
        if named.len() > 1 {
            let remedy = "say all in one guard, as initialize_result with /agentInfo/name";
            self.fault(&at.pointer, "this clue looks at several things", remedy);
        }
        let initialize = || MethodPair::same("initialize");
        let prefixed = |at: Located<'_>, name: &str| -> Vec<_> {
            at.members()
                .into_iter()
                .filter_map(|(member, value)| {
                    let place =
                        crate::dialect::pointer::JsonPointer::parse(&format!("/{name}/{member}"))
                            .ok()?;
                    Some((place, super::types::Expect::Const(value.literal())))
                })
                .collect()
        };
        let (on, when) = if let Some(found) = at.get("agentInfo") {
            (
                Selector::Answers(initialize()),
                prefixed(found, "agentInfo"),
            )
        } else if let Some(found) = at.get("clientInfo") {
            (
                Selector::Method(initialize()),
                prefixed(found, "clientInfo"),
            )
        } else if let Some(found) = at.get("initialize") {
            (Selector::Method(initialize()), self.guard(&found))
        } else if let Some(found) = at.get("update") {
            (
                Selector::Method(MethodPair::same("session/update")),
                self.guard(&found),
            )
        } else if let Some(found) = at.get("initialize_result") {
            (Selector::Answers(initialize()), self.guard(&found))
        } else {
            let remedy = "add agentInfo, clientInfo, initialize, initialize_result or update";
            self.fault(&at.pointer, "this clue looks at nothing", remedy);
            return None;
        };
        let stated = match &on {
            Selector::Method(_) => at.get("initialize_result"),
            _ => None,
        };
        Some(Clue {
            on,
            when,
            stated: stated.map(|at| self.guard(&at)).unwrap_or_default(),
            version: self.optional_text(at, "version"),
        })
    }

    fn memory(&self, at: &Located<'_>) -> Vec<NamedSlot> {
        let known = [
            "from", "method", "answers", "when", "at", "by", "per", "why",
        ];
        at.members()
            .into_iter()
            .filter_map(|(name, at)| {
                self.object(&at, &known);
                let per = at.get("per").and_then(|at| {
                    let words = [
                        ("connection", SlotScope::Connection),
                        ("session", SlotScope::Session),
                        ("request", SlotScope::Request),
                    ];
                    self.word(&at, &words)
                })?;
                let slot = Slot {
                    on: self.on(&at)?,
                    when: at.get("when").map(|at| self.guard(&at)).unwrap_or_default(),
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
        at.members()
            .into_iter()
            .map(|(name, at)| NamedShape {
                name: name.to_owned(),
                cases: at
                    .each()
                    .iter()
                    .filter(|at| self.object(at, &CASE))
                    .map(|at| self.case(at))
                    .collect(),
            })
            .collect()
    }

    fn rule(&self, at: &Located<'_>) -> Option<Rule> {
        let id = at
            .get("id")
            .and_then(|at| at.value.as_str().map(str::to_owned));
        self.set_rule(id);
        let known: Vec<&str> = RULE.iter().chain(&CASE).copied().collect();
        if !self.object(at, &known) {
            return None;
        }
        let on = match at.get("on") {
            Some(on) => {
                self.object(&on, &["from", "method", "answers", "errors_of", "kind"]);
                self.on(&on)
            }
            None => {
                let remedy = "add `\"on\": {\"from\": …, \"method\": …}`";
                self.fault(&at.pointer, "`on` is missing", remedy);
                None
            }
        };
        let split = at.get("split").and_then(|at| {
            self.object(&at, &["dialect", "canonical"]);
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
            cases: self.list(at, "cases", |at| {
                self.object(at, &CASE).then(|| self.case(at))
            }),
            split,
            failure: at.get("failure").and_then(|at| {
                self.word(
                    &at,
                    &[("pass", OnFailure::Pass), ("refuse", OnFailure::Refuse)],
                )
            }),
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
        let kinds = at
            .get("kind")
            .and_then(|at| self.word(&at, &[("dialect_asks", KindChange::DialectAsks)]));
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
        self.object(at, &["dialect", "canonical"]);
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
}
