//! Golden vectors: messages in both columns, run in the ways they state.
//!
//! The format is that of `tests/vectors/dialect` (described in its README); the examples of tables
//! are vectors too.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::library::{Library, Source};
use super::table::{
    Example, Rule, Selector, Table, TableFault, TableFaults, Way, line_of, nearest,
};
use super::text;
use super::translation::Translation;
use super::translator::Translator;
use crate::jsonrpc::{Frame, Limits, Scanned, Side, scan};

/// The keys of a vector that are run, or are comments.
const KEYS: [&str; 16] = [
    "name",
    "dialect",
    "direction",
    "context",
    "dialect_msg",
    "canonical_msg",
    "roundtrip",
    "flow",
    "dialect_before",
    "dialect_after",
    "dialect_reply",
    "canonical_before",
    "canonical_after",
    "canonical_reply",
    "ids",
    "note",
];

/// Keys about what is outside of translation: the raw bytes, and the HTTP request.
const OUTSIDE: [&str; 2] = ["wire", "http"];

/// The keys of an entry of its context.
const CONTEXT: [&str; 6] = [
    "direction",
    "dialect_msg",
    "canonical_msg",
    "dialect_reply",
    "canonical_reply",
    "note",
];

/// The values that a key may have.
const WORDS: [(&str, &[&str]); 3] = [
    ("direction", &["agent_to_client", "client_to_agent"]),
    ("flow", &["d2c", "c2d"]),
    ("ids", &["remapped", "minted", "from_state"]),
];

/// One case.
#[derive(Clone, Debug)]
pub struct Vector {
    /// Its name.
    pub name: String,
    /// The dialect it is for.
    pub dialect: String,
    value: Value,
    /// The methods of the request that an answer belongs to, when no context contains it.
    assumed: Option<(String, String)>,
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
    /// The part of the vector that was not run, because it is outside of translation.
    pub skipped: Option<&'static str>,
}

impl Library {
    /// Runs the examples of a table in the ways they state.
    ///
    /// # Errors
    /// One fault per example that does not hold.
    pub fn check_examples(&self, source: &Source) -> Result<(), TableFaults> {
        let table = source.table();
        let mut faults = TableFaults::default();
        for rule in &table.rules {
            for example in &rule.examples {
                let failed = match Vector::of_example(table, rule, example) {
                    Ok(vector) => vector.run(self),
                    Err(what) => vec![VectorResult::failed(&rule.id, what)],
                };
                for report in failed.into_iter().filter(|report| report.fault.is_some()) {
                    faults.0.push(TableFault {
                        file: source.file.to_string(),
                        line: line_of(&source.text, &example.at),
                        rule: Some(rule.id.to_string()),
                        pointer: example.at.clone(),
                        what: format!(
                            "the example does not hold {}: {}",
                            report.way,
                            report.fault.unwrap_or_default()
                        ),
                        remedy: "correct the rule or the example".to_owned(),
                    });
                }
            }
        }
        if faults.0.is_empty() {
            Ok(())
        } else {
            Err(faults)
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
            skipped: None,
        }
    }
}

impl Vector {
    /// Reads a line of a file of vectors.
    ///
    /// # Errors
    /// An error that names what is missing.
    pub fn parse(line: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        Self::of(value, None)
    }

    /// The example of a rule as a vector. `dialect` and `canonical` are the two messages;
    /// `way` is `both`, `read` or `write`; all other keys are those of vectors.
    ///
    /// # Errors
    /// An error that names what is missing.
    pub fn of_example(table: &Table, rule: &Rule, example: &Example) -> Result<Self, String> {
        let mut value: Value =
            serde_json::from_slice(&example.vector.0).map_err(|error| error.to_string())?;
        let fields = value.as_object_mut().ok_or("an example is an object")?;
        for (short, long) in [("dialect", "dialect_msg"), ("canonical", "canonical_msg")] {
            let message = fields.remove(short).unwrap_or(Value::Null);
            fields.insert(long.to_owned(), message);
        }
        let direction = match rule.on.from {
            Side::Client => "client_to_agent",
            Side::Agent => "agent_to_client",
        };
        let only = rule.base.only.map_or("both", Way::name);
        let way = fields.remove("way").unwrap_or_else(|| only.into());
        fields.insert("roundtrip".into(), json!(way == "both"));
        if way != "both" {
            let flow = if way == "write" { "c2d" } else { "d2c" };
            fields.insert("flow".into(), flow.into());
        }
        fields.insert("direction".into(), direction.into());
        fields.insert("dialect".into(), table.name.clone().into());
        fields.insert("name".into(), (&*rule.id).into());
        let names = rule.on.what.names();
        let assumed = match &rule.on.what {
            Selector::Method(_) => None,
            Selector::Answers(_) | Selector::ErrorsOf(_) => {
                let of = |name: &Option<String>, other: &Option<String>| {
                    let found = name.clone().or_else(|| other.clone()).unwrap_or_default();
                    if found == "*" {
                        "session/prompt".to_owned()
                    } else {
                        found
                    }
                };
                Some((
                    of(&names.dialect, &names.canonical),
                    of(&names.canonical, &names.dialect),
                ))
            }
        };
        Self::of(value, assumed)
    }

    fn of(value: Value, assumed: Option<(String, String)>) -> Result<Self, String> {
        let text = |key: &str| {
            let found = value.get(key).and_then(Value::as_str);
            found
                .map(str::to_owned)
                .ok_or_else(|| format!("`{key}` is missing"))
        };
        text("direction")?;
        check_keys(&value, &[&KEYS[..], &OUTSIDE[..]].concat())?;
        let context = value["context"].as_array();
        for line in context.into_iter().flatten() {
            check_keys(line, &CONTEXT).map_err(|what| format!("in its context, {what}"))?;
        }
        Ok(Self {
            name: text("name")?,
            dialect: text("dialect")?,
            value,
            assumed,
        })
    }

    /// Runs it in all ways it states. The parts that are outside of translation come last, as
    /// skipped.
    #[must_use]
    pub fn run(&self, library: &Library) -> Vec<VectorResult> {
        let both = self.value["roundtrip"] == json!(true);
        let flow = self.value["flow"].as_str().unwrap_or("d2c");
        let ways: &[Way] = match (both, flow) {
            (true, _) => &[Way::Read, Way::Write],
            (false, "c2d") => &[Way::Write],
            _ => &[Way::Read],
        };
        let result = |way, fault, skipped| VectorResult {
            name: self.name.clone(),
            way,
            fault,
            skipped,
        };
        let states = |key: &&str| self.value.get(*key).is_some();
        let skipped = OUTSIDE.into_iter().filter(states);
        ways.iter()
            .map(|way| result(way.name(), self.run_way(library, *way).err(), None))
            .chain(skipped.map(|key| result("", None, Some(key))))
            .collect()
    }

    fn run_way(&self, library: &Library, way: Way) -> Result<(), String> {
        let program = library
            .program(&self.dialect)
            .map_err(|unknown| unknown.to_string())?;
        let sender = side(&self.value["direction"]);
        let peer = way.pick(sender, sender.other());
        let mut run = Run {
            translator: Translator::new(peer, program),
            ids: HashMap::new(),
            minted: Vec::new(),
        };
        let empty = Vec::new();
        for line in self.value["context"].as_array().unwrap_or(&empty) {
            let from = side(&line["direction"]);
            let (own, other) = run.columns(from, line);
            if own.is_null() {
                run.adopt(other);
                continue;
            }
            run.send(from, own)?;
        }
        let (own, expected) = run.columns(sender, &self.value);
        if let Some((dialect, canonical)) = &self.assumed {
            let id = Frame::from(own.to_string());
            if let Scanned::Message(at) = scan(&id, &Limits::default()) {
                let id = at.id(&id).to_owned();
                run.translator
                    .assume(sender.other(), &id, dialect, canonical);
            }
        }
        let (outcome, frame) = run.send(sender, own)?;
        let own_column = way.pick("dialect", "canonical");
        let reached = way.pick("canonical", "dialect");
        let more = |key: String| self.value[key].as_array().cloned().unwrap_or_default();
        let mut wanted = more(format!("{reached}_before"));
        if !expected.is_null() {
            wanted.push(expected.clone());
        }
        wanted.extend(more(format!("{reached}_after")));
        let free_ids = self.value.get("ids").is_some();
        let got: Vec<Value> = values(&outcome.frames(&frame))?;
        compare("forwarded", &got, &wanted, free_ids)?;
        let replies: Vec<Value> = values(&outcome.replies)?;
        compare(
            "answered",
            &replies,
            &more(format!("{own_column}_reply")),
            free_ids,
        )
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
    /// The message of an entry in the column of its sender, and in the other one.
    fn columns<'l>(&self, from: Side, line: &'l Value) -> (&'l Value, &'l Value) {
        let (dialect, canonical) = (&line["dialect_msg"], &line["canonical_msg"]);
        if from == self.translator.peer {
            (dialect, canonical)
        } else {
            (canonical, dialect)
        }
    }

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
                serde_json::from_slice(frame.as_bytes()).map_err(|e| e.to_string())?;
            if value.get("method").is_some()
                && value.get("id").is_some()
                && value["id"] != message["id"]
            {
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

/// Checks that an object has only known keys and words: a mistyped one would be ignored.
fn check_keys(object: &Value, keys: &[&str]) -> Result<(), String> {
    for (key, value) in object.as_object().into_iter().flatten() {
        if !keys.contains(&key.as_str()) {
            return Err(match nearest(key, keys) {
                Some(near) => format!("`{key}` is no key; did you mean `{near}`?"),
                None => format!("`{key}` is no key; known are {}", keys.join(", ")),
            });
        }
        let words = WORDS.iter().find(|(word, _)| word == key);
        if let Some((_, words)) = words
            && !value.as_str().is_some_and(|word| words.contains(&word))
        {
            return Err(format!(
                "`{key}` is {value}; known are {}",
                words.join(", ")
            ));
        }
    }
    Ok(())
}

fn side(direction: &Value) -> Side {
    if direction == "client_to_agent" {
        Side::Client
    } else {
        Side::Agent
    }
}

fn values(frames: &[Frame]) -> Result<Vec<Value>, String> {
    let parse = |frame: &Frame| {
        let text = String::from_utf8_lossy(frame.as_bytes()).into_owned();
        serde_json::from_str(&text)
            .map_err(|error| format!("the output is not JSON: {error}: {text}"))
    };
    frames.iter().map(parse).collect()
}

fn compare(what: &str, got: &[Value], wanted: &[Value], free_ids: bool) -> Result<(), String> {
    let shown = |all: &[Value]| {
        let all: Vec<String> = all.iter().map(Value::to_string).collect();
        format!("[{}]", all.join(", "))
    };
    let without_id = |value: &Value| {
        let mut fields: Map<String, Value> = value.as_object().cloned().unwrap_or_default();
        fields.remove("id");
        Value::Object(fields)
    };
    let equal = |one: &Value, two: &Value| {
        text::same(one.to_string().as_bytes(), two.to_string().as_bytes())
    };
    let same = |(got, wanted): (&Value, &Value)| {
        equal(got, wanted) || (free_ids && equal(&without_id(got), &without_id(wanted)))
    };
    if got.len() == wanted.len() && got.iter().zip(wanted).all(same) {
        return Ok(());
    }
    Err(format!(
        "{what} {} instead of {}",
        shown(got),
        shown(wanted)
    ))
}
