//! Collects what an agent says in a recording that is not ACP, and that no known rule repairs.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::repairs::Repairs;
use acp::{Checker, Schema, Violation};
use conversation::DialectChoice;
use dialect::Library;
use jsonrpc::{Kind, Side};
use recording::capture::{self, LineContent, Lines};
use recording::{Parsed, SegmentReader, peer_info};

/// Maximum number of groups, of messages that are kept of each, and of the bytes of one.
const MAX_GROUPS: usize = 64;
const MAX_SAMPLES: usize = 32;
const MAX_SAMPLE: usize = 32 << 10;

/// Longest header of a recording, in bytes.
const MAX_HEADER: u64 = 1 << 20;

/// Longest name of a kind or a method for which a rule is drafted, in bytes.
const MAX_NAME: usize = 100;

/// What an agent says in a way of its own.
#[derive(Debug, Default)]
pub struct Deviations {
    /// `name` and `version` of its `agentInfo`.
    pub agent: Option<(String, String)>,
    /// The dialect that it was read as.
    pub(super) dialect: String,
    pub(super) groups: Vec<Group>,
    /// How many messages no rule in short is possible for.
    pub(super) others: u64,
}

/// What a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// A kind of update.
    Update,
    /// The calls of a method.
    Method,
    /// The results of a method.
    Answers,
}

/// The messages that one rule is for.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) section: Section,
    /// The kind of update, or the method.
    pub(super) name: String,
    /// How many of them deviate, and the line of the first.
    pub(super) count: u64,
    pub(super) line: u64,
    /// Some of them; longer ones are left out.
    pub(super) samples: Vec<Value>,
    /// The places at which they deviate, as [`Section::path`] writes them.
    pub(super) places: BTreeSet<String>,
}

impl Section {
    /// Its key in a table.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Method => "method",
            Self::Answers => "answers",
        }
    }

    /// Where its members are in a message.
    const fn body(self) -> &'static str {
        match self {
            Self::Update => "/params/update",
            Self::Method => "/params",
            Self::Answers => "/result",
        }
    }

    /// The members of a message.
    pub(super) fn members(self, message: &Value) -> &Value {
        message.pointer(self.body()).unwrap_or(&Value::Null)
    }

    /// A place as it is written in a rule in short; `None` if it cannot be written.
    fn path(self, message: &Value, pointer: &str) -> Option<String> {
        let mut here = self.members(message);
        let mut path = String::new();
        for step in pointer.strip_prefix(self.body())?.split('/').skip(1) {
            if here.is_array() {
                path += "[]";
            } else {
                path = member(&path, &step.replace("~1", "/").replace("~0", "~"))?;
            }
            here = here.pointer(&format!("/{step}")).unwrap_or(&Value::Null);
        }
        Some(path)
    }
}

/// The path of a member; `None` if its name has characters that a path cannot have.
pub(super) fn member(path: &str, name: &str) -> Option<String> {
    if name.is_empty() || name.len() > MAX_NAME || name.contains(['.', '[', ']', '/', '~']) {
        return None;
    }
    let gap = if path.is_empty() { "" } else { "." };
    Some(format!("{path}{gap}{name}"))
}

/// Reads a recording, or a capture.
///
/// # Errors
/// It cannot be read, or has no texts of v1.
pub fn read(path: &Path, library: &Arc<Library>) -> io::Result<Deviations> {
    let head = capture::open(path)?.take(MAX_HEADER);
    let first = SegmentReader::new(head).next().transpose()?;
    if let Some(Parsed::Header(header)) = first.map(|entry| entry.parsed)
        && let mode @ ("meta" | "structure") = &*header.redaction.mode
    {
        let fault = format!("its texts were not recorded; record without --record-redact {mode}");
        return Err(io::Error::other(fault));
    }
    let mut found = Deviations::default();
    let mut checker = Checker::new(false);
    let auto = DialectChoice::Auto;
    let repairs = Repairs::new(library, &auto, &auto, false);
    let mut repairs = repairs.map_err(io::Error::other)?;
    for line in Lines::new(capture::open(path)?) {
        let line = line?;
        let LineContent::Message { from, message, .. } = &line.content else {
            continue;
        };
        let verdict = checker.check_as(*from, message, line.request_method.as_deref());
        if verdict
            .from
            .is_some_and(|side| checker.spoken(side) == Schema::V2)
        {
            let fault = "it is a conversation in the draft of v2, and tables are about v1";
            return Err(io::Error::other(fault));
        }
        repairs.receive(verdict.from, message);
        if verdict.from != Some(Side::Agent) {
            continue;
        }
        let is_initialized = verdict.kind == Some(Kind::Result)
            && verdict.method.as_deref() == Some("initialize")
            && found.agent.is_none();
        let deviates = |one: &&Violation| {
            one.kind.is_of_dialect() && one.pointer != "/jsonrpc" && repairs.rules(one).is_empty()
        };
        let violations: Vec<&Violation> = verdict.violations.iter().filter(deviates).collect();
        if violations.is_empty() && !is_initialized {
            continue;
        }
        let value: Value = serde_json::from_slice(message.as_bytes()).unwrap_or_default();
        if is_initialized {
            let text = |name: &str| {
                peer_info(Side::Agent, &value)?[name]
                    .as_str()
                    .map(str::to_owned)
            };
            found.agent = text("name").map(|name| (name, text("version").unwrap_or_default()));
        }
        if violations.is_empty() {
            continue;
        }
        let group = verdict.kind.and_then(|kind| {
            let method = verdict.method.as_deref()?;
            found.group(kind, method, &value, line.number)
        });
        let Some(group) = group else {
            found.others += 1;
            continue;
        };
        group.count += 1;
        let paths = violations.iter();
        let paths = paths.filter_map(|one| group.section.path(&value, &one.pointer));
        group.places.extend(paths);
        if group.samples.len() < MAX_SAMPLES && message.len() <= MAX_SAMPLE {
            group.samples.push(value);
        }
    }
    let read_as = repairs.dialect(Side::Agent);
    found.dialect = read_as
        .map_or("loose-v1", |(dialect, _)| dialect)
        .to_owned();
    Ok(found)
}

impl Deviations {
    /// Whether there is nothing that a table could repair.
    pub const fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The group of a message, which is added if it is not there.
    fn group(
        &mut self,
        kind: Kind,
        method: &str,
        message: &Value,
        line: u64,
    ) -> Option<&mut Group> {
        let update = || message.pointer("/params/update/sessionUpdate")?.as_str();
        let (section, name) = match kind {
            Kind::Error => return None,
            Kind::Result => (Section::Answers, method),
            _ if method == "session/update" => (Section::Update, update()?),
            _ => (Section::Method, method),
        };
        let same = |group: &Group| group.section == section && group.name == name;
        if let Some(at) = self.groups.iter().position(same) {
            return Some(&mut self.groups[at]);
        }
        if self.groups.len() == MAX_GROUPS || name.len() > MAX_NAME {
            return None;
        }
        self.groups.push(Group {
            section,
            name: name.to_owned(),
            count: 0,
            line,
            samples: Vec::new(),
            places: BTreeSet::new(),
        });
        self.groups.last_mut()
    }
}
