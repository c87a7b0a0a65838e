//! Round trips: messages of the official types cross every dialect unchanged, or with exactly the
//! loss that the dialect's table states; and whatever arrives is canonical.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use acp_relay::dialect::table::Rule;
use acp_relay::dialect::{Library, Way};
use serde_json::Value;

use super::official_types::{MessageKind, Role, Sent, begun, deviates};

/// A rule, as `dialect/rule`, and a place.
type Loss = (String, String);

/// Stated and observed losses over all round trips.
#[derive(Default)]
struct Ledger {
    stated: BTreeSet<Loss>,
    seen: BTreeSet<Loss>,
    /// The rules applied and the place, with the first message that loses it.
    unstated: BTreeMap<Loss, String>,
    failures: BTreeSet<String>,
}

/// How often each kind of message is sent; `PROPTEST_CASES` raises it as for properties.
fn rounds() -> u64 {
    let cases = std::env::var("PROPTEST_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse::<u64>().ok());
    cases.map_or(16, |cases| (cases / 16).max(16))
}

#[test]
fn a_round_trip_loses_exactly_what_the_table_states() {
    let library = super::library();
    let mut ledger = Ledger::default();
    for table in library.tables() {
        for rule in &table.rules {
            for place in rule.loses.iter().flat_map(|loss| &loss.at) {
                let name = format!("{}/{}", table.name, rule.id);
                ledger.stated.insert((name, place.to_string()));
            }
        }
        let program = library.program(&table.name).unwrap();
        for kind in MessageKind::all() {
            let mut line = begun(&program);
            for seed in 0..rounds() * kind.weight() {
                if let Some(sent) = kind.send(&mut line, seed) {
                    ledger.check(library, &kind, &sent);
                }
            }
        }
    }
    let Ledger {
        stated,
        seen,
        unstated,
        failures,
    } = ledger;
    let mut noted = String::new();
    for ((rules, place), sample) in &unstated {
        let _ = writeln!(
            noted,
            "{rules} loses `{place}` and does not state it: {sample}"
        );
    }
    for (rule, place) in stated.difference(&seen) {
        let _ = writeln!(
            noted,
            "{rule} states the loss of `{place}`, which never occurs"
        );
    }
    for failure in failures {
        let _ = writeln!(noted, "{failure}");
    }
    assert!(noted.is_empty(), "\n{noted}");
}

impl Ledger {
    fn check(&mut self, library: &Library, kind: &MessageKind, sent: &Sent) {
        let Sent {
            message,
            received,
            asked,
        } = sent;
        let answers = matches!(kind.role, Role::Result | Role::Error);
        let (fits, others): (Vec<&Value>, Vec<&Value>) = received.there.iter().partition(|got| {
            if answers {
                got.get("method").is_none() && Some(&got["id"]) == asked.as_ref()
            } else {
                got["method"] == message["method"]
            }
        });
        let noted = || {
            format!(
                "{message}\n  by {:?}\n  wire {}\n  there {}\n  here {} {:?}",
                received.rules,
                shown(&received.wire),
                shown(&received.there),
                shown(&received.here),
                received.notes
            )
        };
        // Where ids are replaced, a request that was never sent cannot be named.
        let of_no_client = |note: &String| note.contains("cancels a request that is not open");
        if fits.is_empty() && received.notes.iter().any(of_no_client) {
            return;
        }
        let mut lost = Vec::new();
        match &fits[..] {
            [got] if body(got).0 == body(message).0 => {
                differ("", body(message).1, body(got).1, &mut lost)
            }
            [_] | [] => lost.push(String::new()),
            // Copies beside the message itself need a rule, like messages of other methods.
            all if all.iter().any(|got| body(got).1 == body(message).1) => {}
            _ => {
                self.failures
                    .insert(format!("one message became several: {}", noted()));
            }
        }
        // A request is answered once, by the other peer later or by the bridge at once.
        let expected = usize::from(kind.role == Role::Request && fits.is_empty());
        if received.here.len() != expected || (answers && fits.len() != 1) {
            self.failures
                .insert(format!("an answer is missing or too many: {}", noted()));
        }
        let rules: Vec<(&String, &Rule)> = received
            .rules
            .iter()
            .filter_map(|name| Some((name, find(library, name)?)))
            .collect();
        // A further message needs a rule that emits it.
        let makes = |rule: &Rule| {
            let mut cases = std::iter::once(&rule.base).chain(&rule.cases);
            cases.any(|case| !case.emit.is_empty() || !case.actions.is_empty())
        };
        if (!others.is_empty() || fits.len() > 1) && !rules.iter().any(|(_, rule)| makes(rule)) {
            self.failures
                .insert(format!("something was added: {}", noted()));
        }
        // A rule that only writes has no way back, so the returned message shows nothing.
        let one_way = |rule: &Rule| rule.base.only == Some(Way::Write);
        if rules.iter().any(|(_, rule)| one_way(rule)) {
            return;
        }
        // A message that arrives unchanged was written by the official types.
        let news = |got: &&Value| body(got).1 != body(message).1;
        for got in received.there.iter().chain(&received.here).filter(news) {
            if let Some(found) = deviates(got, kind.method) {
                self.failures
                    .insert(format!("{} is not canonical: {found}\n\t{}", got, noted()));
            }
        }
        let sent = body(message).1.to_string();
        for place in lost {
            let mut known = false;
            for (name, rule) in &rules {
                for loss in rule
                    .loses
                    .iter()
                    .filter(|loss| loss.concerns(sent.as_bytes()))
                {
                    for at in loss
                        .at
                        .iter()
                        .map(ToString::to_string)
                        .filter(|at| covers(at, &place))
                    {
                        self.seen.insert(((*name).clone(), at));
                        known = true;
                    }
                }
            }
            if !known {
                let names: Vec<&str> = received.rules.iter().map(String::as_str).collect();
                let entry = self.unstated.entry((names.join(" "), place));
                entry.or_insert_with(|| format!("{:?} {}", kind.role, noted()));
            }
        }
    }
}

fn shown(all: &[Value]) -> String {
    Value::from(all.to_vec()).to_string()
}

fn find<'l>(library: &'l Library, name: &str) -> Option<&'l Rule> {
    let (table, id) = name.split_once('/')?;
    library
        .table(table)
        .ok()?
        .rules
        .iter()
        .find(|rule| *rule.id == *id)
}

/// Whether a stated place is that place or one around it.
fn covers(stated: &str, place: &str) -> bool {
    if stated.is_empty() {
        return place.is_empty();
    }
    let mut names = place.split('/');
    stated.split('/').all(|stated| {
        names
            .next()
            .is_some_and(|name| stated == "*" || stated == name)
    })
}

/// What a message is (`params`, `result` or `error`), and that.
fn body(message: &Value) -> (&'static str, &Value) {
    let found = ["params", "result", "error"]
        .into_iter()
        .find_map(|name| Some((name, message.get(name)?)));
    found.unwrap_or(("params", &Value::Null))
}

/// The places where two values differ: the leaves of objects, and of arrays element by element.
fn differ(at: &str, sent: &Value, got: &Value, all: &mut Vec<String>) {
    let absent = Value::Object(serde_json::Map::new());
    let mut inner = |name: &str, one: Option<&Value>, two: Option<&Value>| {
        let at = format!("{at}/{name}");
        match (one, two) {
            (Some(one), Some(two)) => differ(&at, one, two, all),
            (Some(only @ Value::Object(members)), None)
            | (None, Some(only @ Value::Object(members)))
                if !members.is_empty() =>
            {
                differ(&at, only, &absent, all)
            }
            _ => all.push(at),
        }
    };
    match (sent, got) {
        (Value::Object(one), Value::Object(two)) => {
            for name in one
                .keys()
                .chain(two.keys().filter(|name| !one.contains_key(*name)))
            {
                inner(name, one.get(name), two.get(name));
            }
        }
        (Value::Array(one), Value::Array(two)) => {
            for index in 0..one.len().max(two.len()) {
                inner("*", one.get(index), two.get(index));
            }
        }
        (one, two) if one == two => {}
        _ => all.push(at.to_owned()),
    }
}
