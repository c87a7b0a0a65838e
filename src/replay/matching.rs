//! Compares recorded and live bodies; redacted values match anything.
//!
//! Names are replaced before (see `names`).

use serde_json::Value;

use transport::replay::MatchRule;

/// The start and end of the mark that redaction leaves in a text.
pub(super) const REDACTED: (&str, char) = ("‹redacted", '›');

/// Members of `initialize` that identify the client; they are ignored.
const CLIENT_INFO: [&str; 2] = ["clientInfo", "clientCapabilities"];

/// Whether the live params of `method` match the recorded ones.
pub(super) fn matches(by: MatchRule, method: &str, recorded: &Value, live: &Value) -> bool {
    let ignored =
        |name: &str| name == "_meta" || (method == "initialize" && CLIENT_INFO.contains(&name));
    match by {
        MatchRule::Order => true,
        MatchRule::Shape => fits(false, recorded, live, &ignored),
        MatchRule::Strict => fits(true, recorded, live, &ignored),
    }
}

/// The share of recorded leaves that the live body has, in thousandths.
pub(super) fn similarity(recorded: &Value, live: &Value) -> usize {
    fn count(recorded: &Value, live: Option<&Value>) -> (usize, usize) {
        let sum = |all: Vec<(usize, usize)>| {
            let add = |sum: (usize, usize), one: (usize, usize)| (sum.0 + one.0, sum.1 + one.1);
            all.into_iter().fold((0, 0), add)
        };
        match recorded {
            Value::Object(members) => sum(members
                .iter()
                .map(|(name, one)| count(one, live.and_then(|live| live.get(name))))
                .collect()),
            Value::Array(all) => sum(all
                .iter()
                .enumerate()
                .map(|(at, one)| count(one, live.and_then(|live| live.get(at))))
                .collect()),
            leaf => {
                let same = live.is_some_and(|live| fits(true, leaf, live, &|_| false));
                (usize::from(same), 1)
            }
        }
    }
    let (same, all) = count(recorded, Some(live));
    (same * 1000).checked_div(all).unwrap_or(1000)
}

/// Whether the members have equal values (`strict`) or at least the same types.
fn fits(strict: bool, recorded: &Value, live: &Value, ignored: &dyn Fn(&str) -> bool) -> bool {
    match (recorded, live) {
        (Value::String(text), Value::String(live)) if strict => same_text(text, live),
        // Redaction replaces numbers by strings, too.
        (Value::String(text), _) if text.starts_with(REDACTED.0) => true,
        (Value::Object(a), Value::Object(b)) => {
            let plain = |name: &&String| !ignored(name);
            a.keys().filter(plain).count() == b.keys().filter(plain).count()
                && a.iter().filter(|(name, _)| plain(name)).all(|(name, one)| {
                    b.get(name)
                        .is_some_and(|other| fits(strict, one, other, ignored))
                })
        }
        // By shape, only elements that both arrays have are compared.
        (Value::Array(a), Value::Array(b)) => {
            (!strict || a.len() == b.len())
                && a.iter().zip(b).all(|(a, b)| fits(strict, a, b, ignored))
        }
        (Value::Number(a), Value::Number(b)) if strict => a == b || a.as_f64() == b.as_f64(),
        (a, b) if strict => a == b,
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

/// Whether two texts are equal, apart from redacted parts of the recorded one.
fn same_text(recorded: &str, live: &str) -> bool {
    let Some((before, marked)) = recorded.split_once(REDACTED.0) else {
        return recorded == live;
    };
    let Some(mut live) = live.strip_prefix(before) else {
        return false;
    };
    let mut rest = marked.split_once(REDACTED.1).map_or("", |(_, rest)| rest);
    while let Some((between, marked)) = rest.split_once(REDACTED.0) {
        let Some(at) = live.find(between) else {
            return false;
        };
        live = &live[at + between.len()..];
        rest = marked.split_once(REDACTED.1).map_or("", |(_, rest)| rest);
    }
    live.ends_with(rest)
}
