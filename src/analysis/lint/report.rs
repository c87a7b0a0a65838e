//! Findings as text, as JSON and as JUnit XML, by event.

use std::time::Duration;

use serde_json::{Value, json};

use super::rules::{Finding, RULES};
use crate::junit::{Case, Suite};
use crate::text::{excerpt, timestamp};
use jsonrpc::Side;

/// A finding of the linter in one line.
pub fn event_line(finding: &Finding) -> String {
    let mut text = format!(
        "{:>6} {:>12}  {:<7} {} {}",
        finding.n,
        timestamp(finding.t),
        finding.rule.severity.name(),
        finding.rule.id,
        finding.side.map_or("", Side::name),
    );
    for more in [finding.method.as_deref().unwrap_or_default(), &finding.what] {
        if !more.is_empty() {
            text += " ";
            text += &excerpt(more.as_bytes());
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// A finding of the linter as one JSON object.
pub fn event_json(file: &str, finding: &Finding) -> Value {
    json!({
        "file": file,
        "n": finding.n,
        "t": finding.t as f64 / 1e6,
        "id": finding.rule.id,
        "severity": finding.rule.severity,
        "side": finding.side,
        "method": finding.method,
        "what": finding.what,
    })
}

/// The findings in a file as a test suite: for each rule a case, which fails by those that count.
pub fn suite<'f>(
    name: String,
    took: Duration,
    counting: &(impl Iterator<Item = &'f Finding> + Clone),
) -> Suite {
    let cases = RULES.iter().map(|rule| {
        let own = counting.clone().filter(|finding| finding.rule == *rule);
        Case {
            name: rule.id.to_owned(),
            faults: own
                .map(|finding| event_line(finding).trim().to_owned())
                .collect(),
            broken: false,
        }
    });
    Suite {
        name,
        took,
        cases: cases.collect(),
    }
}
