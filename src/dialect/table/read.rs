//! Parses a table from its file.
//!
//! It is written by hand so that all faults are reported at once, each with its place. `validate`
//! then checks the table as a whole.

use serde_json::Value;

use super::fault::Faults;
use super::parts::{At, Reading};
use super::rows::CASE;
use super::types::{
    Clue, Example, Failure, Jsonrpc, Kinds, Memory, Names, On, Per, Rule, Selector, Shape, Slot,
    Table, Way,
};
use crate::dialect::law;
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
    pub fn read(file: &str, text: &str) -> Result<Self, Faults> {
        let reading = Reading::new(file, text);
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => {
                reading.fault("", format!("this is not JSON: {error}"), "correct it");
                let mut faults = reading.done();
                for fault in &mut faults.0 {
                    fault.line = error.line();
                }
                return Err(faults);
            }
        };
        let at = At {
            value: &value,
            pointer: String::new(),
        };
        match at.get("format").and_then(|at| at.value.as_u64()) {
            Some(format) if format > FORMAT => {
                let what =
                    format!("format {format} is newer than this program, which reads {FORMAT}");
                reading.fault("/format", what, "this table needs a newer version");
                return Err(reading.done());
            }
            Some(FORMAT) => {}
            _ => reading.fault("/format", "the format is not given", "add `\"format\": 1`"),
        }
        if !reading.object(&at, &TABLE) {
            return Err(reading.done());
        }
        let table = reading.table(&at);
        law::check(&table, &|rule, pointer, what, remedy| {
            reading.enter(rule.map(str::to_owned));
            reading.fault(pointer, what, remedy);
            reading.enter(None);
        });
        let mut faults = reading.done();
        if faults.0.is_empty() {
            return Ok(table);
        }
        faults.0.sort_by_key(|fault| fault.line);
        Err(faults)
    }
}

impl Reading<'_> {
    fn table(&self, at: &At<'_>) -> Table {
        let texts = |name| self.list(at, name, |at| self.text(at));
        Table {
            name: self.need(at, "dialect"),
            aliases: texts("aliases"),
            title: self.need(at, "title"),
            dates: self.may(at, "dates"),
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
            framing: self.may(at, "framing"),
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

    fn clue(&self, at: &At<'_>) -> Option<Clue> {
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
        let initialize = || Names::same("initialize");
        let prefixed = |at: At<'_>, name: &str| -> Vec<_> {
            at.members()
                .into_iter()
                .filter_map(|(member, value)| {
                    let place =
                        crate::dialect::pointer::Place::parse(&format!("/{name}/{member}")).ok()?;
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
                Selector::Method(Names::same("session/update")),
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
            version: self.may(at, "version"),
        })
    }

    fn memory(&self, at: &At<'_>) -> Vec<Memory> {
        let known = [
            "from", "method", "answers", "when", "at", "by", "per", "why",
        ];
        at.members()
            .into_iter()
            .filter_map(|(name, at)| {
                self.object(&at, &known);
                let per = at.get("per").and_then(|at| {
                    let words = [
                        ("connection", Per::Connection),
                        ("session", Per::Session),
                        ("request", Per::Request),
                    ];
                    self.word(&at, &words)
                })?;
                let slot = Slot {
                    on: self.on(&at)?,
                    when: at.get("when").map(|at| self.guard(&at)).unwrap_or_default(),
                    at: self.may_place(&at, "at")?,
                    by: self.may_place(&at, "by"),
                    per,
                };
                let name = name.to_owned();
                Some(Memory { name, slot })
            })
            .collect()
    }

    fn shapes(&self, at: &At<'_>) -> Vec<Shape> {
        at.members()
            .into_iter()
            .map(|(name, at)| Shape {
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

    fn rule(&self, at: &At<'_>) -> Option<Rule> {
        let id = at
            .get("id")
            .and_then(|at| at.value.as_str().map(str::to_owned));
        self.enter(id);
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
                .may_place(&at, "dialect")
                .map(|place| (Way::Read, place));
            read.or_else(|| Some((Way::Write, self.may_place(&at, "canonical")?)))
        });
        // The rest is parsed even if `on` is faulty, so that all faults are reported at once.
        let nothing = On {
            from: Side::Client,
            what: Selector::Method(Names::same("")),
            kinds: None,
        };
        let selects = on.is_some();
        let rule = Rule {
            id: self.need(at, "id").into(),
            at: at.pointer.clone(),
            why: self.need(at, "why"),
            on: on.unwrap_or(nothing),
            lossy: self.may(at, "lossy"),
            loses: self.loses(at),
            base: self.case(at),
            cases: self.list(at, "cases", |at| {
                self.object(at, &CASE).then(|| self.case(at))
            }),
            split,
            failure: at.get("failure").and_then(|at| {
                self.word(&at, &[("pass", Failure::Pass), ("refuse", Failure::Refuse)])
            }),
            examples: self.list(at, "examples", |at| {
                Some(Example {
                    vector: at.literal(),
                    at: at.pointer.clone(),
                })
            }),
        };
        self.enter(None);
        selects.then_some(rule)
    }

    fn on(&self, at: &At<'_>) -> Option<On> {
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
            .and_then(|at| self.word(&at, &[("dialect_asks", Kinds::DialectAsks)]));
        Some(On {
            from: from?,
            what,
            kinds,
        })
    }

    fn names(&self, at: &At<'_>) -> Option<Names> {
        if at.value.is_string() {
            return self.text(at).map(|name| Names::same(&name));
        }
        self.object(at, &["dialect", "canonical"]);
        let names = Names {
            dialect: self.may(at, "dialect"),
            canonical: self.may(at, "canonical"),
        };
        if names == Names::default() {
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
