//! Statistics as text, or as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::paint::{Paint, Tone};
use super::stats::{Figures, Method, Times};
use super::units::{excerpt, size, took};

/// Maximum width of a line of counts.
const WIDTH: usize = 78;

pub(super) fn json(figures: &mut Figures) -> Value {
    let [client, agent] = figures.said;
    let said = |(frames, bytes): (u64, u64)| json!({"frames": frames, "bytes": bytes});
    let methods: Vec<Value> = figures
        .methods
        .iter_mut()
        .map(|((from, name), method)| {
            json!({
                "from": from,
                "method": name,
                "requests": method.requests,
                "notifications": method.notifications,
                "errors": method.errors,
                "unanswered": unanswered(method),
                "took": times(&mut method.times),
                "bytes": method.bytes,
            })
        })
        .collect();
    json!({
        "lasted": figures.lasted as f64 / 1e6,
        "client": said(client),
        "agent": said(agent),
        "turns": times(&mut figures.turns),
        "stop_reasons": figures.stops,
        "first_update": times(&mut figures.first_update),
        "permission": times(&mut figures.permission),
        "methods": methods,
        "updates": figures.updates,
        "rules": figures.rules,
        "notes": figures.notes,
        "links": figures.links,
        "noise": figures.noise,
        "stderr_bytes": figures.stderr,
        "missing_events": figures.missing,
    })
}

pub(super) fn text(figures: &mut Figures, paint: Paint) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    let [(sent, sent_bytes), (told, told_bytes)] = figures.said;
    line(&format!(
        "{}: client {sent} messages, {}; agent {told} messages, {}",
        took(figures.lasted),
        size(sent_bytes),
        size(told_bytes)
    ));
    line("");
    let heads = format!(
        "{:<42}{:>6}{:>10}{:>10}{:>10}",
        "", "count", "p50", "p99", "max"
    );
    line(&paint.tone(Tone::Strong, &heads));
    for (name, times) in [
        ("turn", &mut figures.turns),
        ("first update of a turn", &mut figures.first_update),
        ("wait for permission", &mut figures.permission),
    ] {
        let count = times.count();
        line(&format!("{name:<42}{count:>6}{}", durations(times)));
    }
    line("");
    let heads = format!(
        "{:<28}{:>6}{:>5}{:>5}{:>5}{:>10}{:>10}{:>10}",
        "method", "count", "fail", "open", "note", "p50", "p99", "max"
    );
    for side in ["client", "agent"] {
        let mut methods = figures.methods.iter_mut();
        let mut methods = methods
            .by_ref()
            .filter(|((from, _), _)| *from == side)
            .peekable();
        if methods.peek().is_some() {
            let heads = heads.replacen("method", &format!("{side:<6}"), 1);
            line(&paint.tone(Tone::Strong, &heads));
        }
        for ((_, name), method) in methods {
            let row = row(name, method);
            let tone = (method.errors > 0).then_some(Tone::Odd);
            line(&tone.map_or_else(|| row.clone(), |tone| paint.tone(tone, &row)));
        }
    }
    for (title, counts) in [
        ("stop reasons", &figures.stops),
        ("updates", &figures.updates),
        ("rules", &figures.rules),
        ("notes", &figures.notes),
        ("links", &figures.links),
    ] {
        if !counts.is_empty() {
            line("");
            line(&paint.tone(Tone::Strong, title));
            line(&list(counts));
        }
    }
    for (count, what) in [
        (figures.noise, "lines that were no message"),
        (figures.stderr, "bytes on stderr"),
        (figures.missing, "events missing in gaps"),
    ] {
        if count > 0 {
            line(&format!("{count} {what}"));
        }
    }
    out
}

fn row(name: &str, method: &mut Method) -> String {
    let blank = |count: u64| match count {
        0 => String::new(),
        count => count.to_string(),
    };
    format!(
        "{:<28}{:>6}{:>5}{:>5}{:>5}{}",
        excerpt(name.as_bytes()),
        blank(method.requests),
        blank(method.errors),
        blank(unanswered(method)),
        blank(method.notifications),
        durations(&mut method.times),
    )
}

const fn unanswered(method: &Method) -> u64 {
    method.requests.saturating_sub(method.times.count() as u64)
}

fn durations(times: &mut Times) -> String {
    let mut out = String::new();
    for percent in [50, 99, 100] {
        let shown = times.percentile(percent).map(took).unwrap_or_default();
        // Writing to a string does not fail.
        let _ = write!(out, "{shown:>10}");
    }
    out
}

fn times(times: &mut Times) -> Value {
    let seconds = |micros: u64| micros as f64 / 1e6;
    json!({
        "count": times.count(),
        "p50": times.percentile(50).map(seconds),
        "p99": times.percentile(99).map(seconds),
        "max": times.percentile(100).map(seconds),
    })
}

/// `name count, name count`, in lines.
fn list(counts: &BTreeMap<String, u64>) -> String {
    let mut out = String::new();
    let mut column = WIDTH;
    for (name, count) in counts {
        let item = format!("{} {count}", excerpt(name.as_bytes()));
        let length = item.chars().count() + 2;
        if column + length > WIDTH {
            out.push_str(if out.is_empty() { "  " } else { ",\n  " });
            column = 2;
        } else {
            out.push_str(", ");
        }
        column += length;
        out.push_str(&item);
    }
    out
}
