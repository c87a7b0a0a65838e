//! Detects the dialect of a peer from its messages.
//!
//! Each side is judged by its own messages: the `initialize` request or its result, and, where
//! those are inconclusive, its first updates: an update does not overrule what a result has stated.
//! `conversation` decides what `auto` does with the result.

use std::sync::Arc;

use super::guard::holds;
use super::pointer::{JsonPointer, own_pointer};
use super::table::{Clue, Selector, Table};
use super::tree::Node;
use jsonrpc::{Envelope, Frame, Kind, Side};

/// A detected dialect, and the clue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetectedDialect {
    /// The table's name.
    pub dialect: String,
    /// The clue, as a clause for the log.
    pub by: String,
}

/// What a peer has stated in `initialize`, as far as clues in later messages depend on it.
#[derive(Clone, Debug, Default)]
pub struct Detector {
    /// Clues that are ruled out: a table's name, and the index of the clue.
    ruled_out: Vec<(String, usize)>,
}

impl Detector {
    /// The dialect whose clue matches a message best. The form of a message counts more than the
    /// name in it, for peers may use another peer's name; then the clue with the most expectations
    /// wins. The headers of tables are sufficient.
    pub fn detect<'t>(
        &mut self,
        tables: impl IntoIterator<Item = &'t Arc<Table>>,
        from: Side,
        frame: &Frame,
        at: &Envelope,
        request: Option<&str>,
    ) -> Option<DetectedDialect> {
        let body = at.body(frame).map_or(Node::Absent, Node::raw);
        let method = at.method(frame);
        let states = at.kind == Kind::Result && request == Some("initialize");
        if states {
            self.ruled_out.clear();
        }
        let mut best: Option<((usize, usize), DetectedDialect)> = None;
        for table in tables {
            if table.speaker.is_some_and(|side| side != from) {
                continue;
            }
            for (nth, clue) in table.detect.iter().enumerate() {
                if states && !holds(&body, &clue.stated.0) {
                    self.ruled_out.push((table.name.clone(), nth));
                }
                let fits = match &clue.on {
                    Selector::Method(names) => {
                        matches!(at.kind, Kind::Request | Kind::Notification)
                            && names.canonical.as_deref() == Some(&*method)
                    }
                    Selector::Answers(names) => {
                        at.kind == Kind::Result && names.canonical.as_deref() == request
                    }
                    Selector::ErrorsOf(_) => false,
                };
                let meets = fits && holds(&body, &clue.when.0) && version_fits(clue, &body);
                if !meets || self.has_ruled_out(table, nth) {
                    continue;
                }
                let weight = weight(clue);
                if best.as_ref().is_none_or(|(known, _)| weight > *known) {
                    let dialect = table.name.clone();
                    let by = describe(clue);
                    best = Some((weight, DetectedDialect { dialect, by }));
                }
            }
        }
        best.map(|(_, found)| found)
    }

    fn has_ruled_out(&self, table: &Table, nth: usize) -> bool {
        let mut all = self.ruled_out.iter();
        all.any(|(name, clue)| *name == table.name && *clue == nth)
    }
}

/// The weight of a clue: the number of its parts that are not a name, and of all.
fn weight(clue: &Clue) -> (usize, usize) {
    let parts = || clue.when.0.iter().chain(&clue.stated.0);
    let looks = parts().filter(|(place, _)| !is_peer_info(place));
    let all = parts().count() + usize::from(clue.version.is_some());
    (looks.count(), all)
}

/// A clue, as a clause for the log.
fn describe(clue: &Clue) -> String {
    let places = clue.when.0.iter().map(|(place, _)| place.to_string());
    let places: Vec<String> = places.collect();
    let method = clue.on.names().canonical.as_deref().unwrap_or_default();
    format!("{} of {method}", places.join(", "))
}

/// Whether a place is in the peer's own name and version.
fn is_peer_info(place: &JsonPointer) -> bool {
    let first = place.names().first();
    first.is_some_and(|name| matches!(&**name, "agentInfo" | "clientInfo"))
}

fn version_fits(clue: &Clue, body: &Node<'_>) -> bool {
    let Some(bound) = &clue.version else {
        return true;
    };
    let own = ["/agentInfo/version", "/clientInfo/version"]
        .iter()
        .find_map(|at| body.text_at(&own_pointer(at)));
    let Some(own) = own else { return false };
    bound.split(',').all(|bound| {
        let number = bound.trim_start_matches(|c: char| !c.is_ascii_digit());
        let sign = bound.strip_suffix(number).unwrap_or_default();
        let order = numbers(&own).cmp(&numbers(number.trim_end()));
        match sign.trim() {
            "<" => order.is_lt(),
            "<=" => order.is_le(),
            ">" => order.is_gt(),
            ">=" => order.is_ge(),
            _ => order.is_eq(),
        }
    })
}

/// The numbers of a version; what follows `-` does not count.
fn numbers(version: &str) -> Vec<u64> {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    let mut all: Vec<u64> = plain
        .split('.')
        .take(8)
        .map(|part| part.trim_start_matches('v').parse().unwrap_or(0))
        .collect();
    while all.last() == Some(&0) {
        all.pop();
    }
    all
}
