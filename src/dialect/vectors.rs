//! Golden vectors: messages in both columns, run in the ways they state.
//!
//! The format is that of `tests/vectors/dialect` (described in its README); the examples of tables
//! are vectors too.

use std::collections::HashMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use similar::TextDiff;

use super::library::{Library, Source};
use super::table::{Document, Rule, Selector, Table, TableFaults, Way};
use super::text;
use super::translation::Translation;
use super::translator::Translator;
use jsonrpc::{Frame, Limits, Scanned, Side, scan};

/// One case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    /// Its name.
    pub name: String,
    /// The dialect it is for.
    pub dialect: String,
    direction: Direction,
    #[serde(default)]
    context: Vec<Earlier>,
    #[serde(default)]
    dialect_msg: Value,
    #[serde(default)]
    canonical_msg: Value,
    #[serde(default)]
    roundtrip: bool,
    /// The way, when it is not both.
    #[serde(default)]
    flow: Flow,
    #[serde(default)]
    dialect_before: Vec<Value>,
    #[serde(default)]
    dialect_after: Vec<Value>,
    #[serde(default)]
    dialect_reply: Vec<Value>,
    #[serde(default)]
    canonical_before: Vec<Value>,
    #[serde(default)]
    canonical_after: Vec<Value>,
    #[serde(default)]
    canonical_reply: Vec<Value>,
    /// Why the ids of the two columns differ.
    ids: Option<DifferentIds>,
    #[serde(rename = "note")]
    _note: Option<IgnoredAny>,
    /// The raw bytes, and the HTTP request, which are outside of translation.
    wire: Option<IgnoredAny>,
    http: Option<IgnoredAny>,
    /// The methods of the request that an answer belongs to, when no context contains it.
    #[serde(skip)]
    assumed: Option<(String, String)>,
}

/// A message before the one of the vector.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Earlier {
    direction: Direction,
    #[serde(default)]
    dialect_msg: Value,
    #[serde(default)]
    canonical_msg: Value,
    #[serde(rename = "dialect_reply")]
    _dialect_reply: Option<IgnoredAny>,
    #[serde(rename = "canonical_reply")]
    _canonical_reply: Option<IgnoredAny>,
    #[serde(rename = "note")]
    _note: Option<IgnoredAny>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Direction {
    AgentToClient,
    ClientToAgent,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Flow {
    #[default]
    D2c,
    C2d,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DifferentIds {
    Remapped,
    Minted,
    FromState,
}

/// The result of a vector in one way.
#[derive(Clone, Debug, Serialize)]
pub struct VectorResult {
    /// The vector's name.
    pub name: String,
    /// `read` or `write`.
    pub way: &'static str,
    /// The failure; `None` when it passed.
    pub fault: Option<String>,
    /// The lines that are expected (`-`) and those that were made (`+`), if that is the failure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<String>,
    /// The part of the vector that was not run, because it is outside of translation.
    pub skipped: Option<&'static str>,
}

/// Why a vector fails.
struct Mismatch {
    what: String,
    diff: Vec<String>,
}

impl Library {
    /// Runs the examples of a table in the ways they state.
    ///
    /// # Errors
    /// One fault per example that does not hold.
    pub fn check_examples(&self, source: &Source) -> Result<(), TableFaults> {
        let table = source.table();
        let mut faults = TableFaults::default();
        let Ok(document) = Document::parse(&source.file, &source.text) else {
            return Ok(());
        };
        for (at, rule) in table.rules.iter().enumerate() {
            for (nth, example) in rule.examples().iter().enumerate() {
                let results = match Vector::of_example(table, rule, example) {
                    Ok(vector) => vector.run(self),
                    Err(what) => vec![VectorResult::failed(&rule.id, what)],
                };
                for VectorResult {
                    way, fault, diff, ..
                } in results
                {
                    let Some(what) = fault else { continue };
                    let what = format!("the example does not hold {way}: {what}");
                    let pointer = format!("/rules/{at}/examples/{nth}");
                    let pointer = table.origins.written(&pointer);
                    let remedy = "correct the rule or the example".to_owned();
                    let mut fault = document.fault(&pointer, what, remedy);
                    (fault.rule, fault.diff) = (Some(rule.id.to_string()), diff);
                    faults.0.push(fault);
                }
            }
        }
        match faults.0.is_empty() {
            true => Ok(()),
            false => Err(faults),
        }
    }
}

impl VectorResult {
    /// A vector that cannot be run.
    #[must_use]
    pub fn failed(name: &str, fault: String) -> Self {
        Self {
            name: name.to_owned(),
            way: "",
            fault: Some(fault),
            diff: Vec::new(),
            skipped: None,
        }
    }
}

impl Vector {
    /// Reads a line of a file of vectors.
    ///
    /// # Errors
    /// An error that names what is missing or not known.
    pub fn parse(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| error.to_string())
    }

    /// The example of a rule as a vector. `dialect` and `canonical` are the two messages;
    /// `way` is `both`, `read` or `write`; all other keys are those of vectors.
    ///
    /// # Errors
    /// An error that names what is missing or not known.
    pub fn of_example(
        table: &Table,
        rule: &Rule,
        example: &Map<String, Value>,
    ) -> Result<Self, String> {
        let mut fields = example.clone();
        for (short, long) in [("dialect", "dialect_msg"), ("canonical", "canonical_msg")] {
            let message = match fields.remove(short).unwrap_or_default() {
                // TOML has no `null`, and a message of a recording can be pasted as it is.
                Value::String(text) => {
                    serde_json::from_str(&text).map_err(|error| format!("{short}: {error}"))?
                }
                message => message,
            };
            fields.insert(long.to_owned(), message);
        }
        let direction = match rule.on.from {
            Side::Client => "client_to_agent",
            Side::Agent => "agent_to_client",
        };
        let only = rule.base.only.map_or("both", Way::name);
        let way = fields.remove("way").unwrap_or_else(|| only.into());
        for (name, value) in [
            ("roundtrip", json!(way == "both")),
            ("flow", json!(if way == "write" { "c2d" } else { "d2c" })),
            ("direction", json!(direction)),
            ("dialect", json!(table.name)),
            ("name", json!(&*rule.id)),
        ] {
            fields.insert(name.to_owned(), value);
        }
        let mut vector: Self =
            serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())?;
        if !matches!(rule.on.what, Selector::Method(_)) {
            let names = rule.on.what.names();
            let of = |name: &Option<String>, other: &Option<String>| {
                let found = name.clone().or_else(|| other.clone()).unwrap_or_default();
                match &*found {
                    "*" => "session/prompt".to_owned(),
                    _ => found,
                }
            };
            let dialect = of(&names.dialect, &names.canonical);
            vector.assumed = Some((dialect, of(&names.canonical, &names.dialect)));
        }
        Ok(vector)
    }

    /// Runs it in all ways it states. The parts that are outside of translation come last, as
    /// skipped.
    #[must_use]
    pub fn run(&self, library: &Library) -> Vec<VectorResult> {
        let ways: &[Way] = match (self.roundtrip, self.flow) {
            (true, _) => &[Way::Read, Way::Write],
            (false, Flow::D2c) => &[Way::Read],
            (false, Flow::C2d) => &[Way::Write],
        };
        let result = |way, failed: Option<Mismatch>, skipped| {
            let (fault, diff) = failed.map(|failed| (failed.what, failed.diff)).unzip();
            VectorResult {
                name: self.name.clone(),
                way,
                fault,
                diff: diff.unwrap_or_default(),
                skipped,
            }
        };
        let outside = [("wire", self.wire), ("http", self.http)].into_iter();
        let skipped = outside.filter_map(|(key, stated)| stated.map(|_| key));
        ways.iter()
            .map(|way| result(way.name(), self.run_way(library, *way).err(), None))
            .chain(skipped.map(|key| result("", None, Some(key))))
            .collect()
    }

    fn run_way(&self, library: &Library, way: Way) -> Result<(), Mismatch> {
        let program = library
            .program(&self.dialect)
            .map_err(|error| error.to_string())?;
        let sender = self.direction.sender();
        let peer = way.pick(sender, sender.other());
        let mut run = Run {
            translator: Translator::new(peer, program),
            ids: HashMap::new(),
            minted: Vec::new(),
        };
        for line in &self.context {
            let from = line.direction.sender();
            let (own, other) = match from == peer {
                true => (&line.dialect_msg, &line.canonical_msg),
                false => (&line.canonical_msg, &line.dialect_msg),
            };
            if own.is_null() {
                run.adopt(other);
                continue;
            }
            run.send(from, own)?;
        }
        let dialect = (&self.dialect_before, &self.dialect_msg, &self.dialect_after);
        let canonical = (
            &self.canonical_before,
            &self.canonical_msg,
            &self.canonical_after,
        );
        let (_, own, _) = way.pick(dialect, canonical);
        let (before, expected, after) = way.reverse().pick(dialect, canonical);
        if let Some((dialect, canonical)) = &self.assumed {
            let id = Frame::from(own.to_string());
            if let Scanned::Message(at) = scan(&id, &Limits::default()) {
                let id = at.id(&id).to_owned();
                run.translator
                    .assume(sender.other(), &id, dialect, canonical);
            }
        }
        let (outcome, frame) = run.send(sender, own)?;
        let expected = Some(expected).filter(|message| !message.is_null());
        let wanted: Vec<&Value> = before.iter().chain(expected).chain(after).collect();
        let replies = way.pick(&self.dialect_reply, &self.canonical_reply);
        let free_ids = self.ids.is_some();
        compare("forwarded", &outcome.frames(&frame), &wanted, free_ids)?;
        let replies: Vec<&Value> = replies.iter().collect();
        compare("answered", &outcome.replies, &replies, free_ids)
    }
}

impl Direction {
    fn sender(self) -> Side {
        match self {
            Self::AgentToClient => Side::Agent,
            Self::ClientToAgent => Side::Client,
        }
    }
}

/// The state of running one vector.
struct Run {
    translator: Translator,
    /// Ids of the vector for which the bridge has chosen others, in the column of its own requests.
    ids: HashMap<String, Value>,
    /// Requests of the bridge that no entry of the vector has claimed.
    minted: Vec<Value>,
}

impl Run {
    fn send(&mut self, from: Side, message: &Value) -> Result<(Translation, Frame), String> {
        let mut message = message.clone();
        if message.get("method").is_none()
            && let Some(own) = self.ids.get(&message["id"].to_string())
        {
            message["id"] = own.clone();
        }
        let frame = Frame::from(message.to_string());
        let Scanned::Message(at) = scan(&frame, &Limits::default()) else {
            return Err(format!("this is no message: {message}"));
        };
        let outcome = if from == self.translator.peer {
            self.translator.read(&frame, &at)
        } else {
            self.translator.write(&frame, &at)
        };
        for frame in outcome.frames(&frame).iter().chain(&outcome.replies) {
            let value: Value =
                serde_json::from_slice(frame.as_bytes()).map_err(|error| error.to_string())?;
            let is_request = value.get("method").is_some() && value.get("id").is_some();
            if is_request && value["id"] != message["id"] {
                self.minted.push(value);
            }
        }
        Ok((outcome, frame))
    }

    /// Handles a message that only the other side sees: possibly a request of the bridge.
    fn adopt(&mut self, other: &Value) {
        let found = self
            .minted
            .iter()
            .position(|own| own["method"] == other["method"]);
        if let Some(at) = found.filter(|_| other.get("method").is_some()) {
            let own = self.minted.remove(at);
            self.ids.insert(other["id"].to_string(), own["id"].clone());
        }
    }
}

/// Compares the messages of one side; with `free_ids` their ids may differ.
fn compare(what: &str, got: &[Frame], wanted: &[&Value], free_ids: bool) -> Result<(), Mismatch> {
    let same = |(got, wanted): (&Frame, &&Value)| {
        let mut wanted = (*wanted).clone();
        let id = text::member(got.as_bytes(), "id").filter(|_| free_ids);
        if let Some(id) = id.and_then(|id| serde_json::from_slice(id).ok()) {
            wanted["id"] = id;
        }
        text::same(got.as_bytes(), wanted.to_string().as_bytes())
    };
    if got.len() == wanted.len() && got.iter().zip(wanted).all(same) {
        return Ok(());
    }
    let text = |message: &mut Value| {
        message.sort_all_objects();
        format!("{message:#}\n")
    };
    let got =
        (got.iter()).map(|frame| serde_json::from_slice(frame.as_bytes()).unwrap_or_default());
    let got: String = got.map(|mut message| text(&mut message)).collect();
    let wanted: String = wanted
        .iter()
        .map(|message| text(&mut (*message).clone()))
        .collect();
    Err(Mismatch {
        what: format!("{what} another message"),
        diff: diff(&wanted, &got),
    })
}

/// The lines that differ, and three around them.
fn diff(wanted: &str, got: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(wanted, got);
    let ops = diff.grouped_ops(3).into_iter().flatten();
    let lines = ops.flat_map(|op| diff.iter_changes(&op).collect::<Vec<_>>());
    lines
        .map(|line| format!("{}{}", line.tag(), line.value().trim_end()))
        .collect()
}

impl From<String> for Mismatch {
    fn from(what: String) -> Self {
        Self {
            what,
            diff: Vec::new(),
        }
    }
}
