//! Statistics as text, or as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::paint::{Paint, Tone};
use super::statistics::{Durations, Method, Statistics};
use super::units::{duration, excerpt, size};

/// Maximum width of a line of counts.
const WIDTH: usize = 78;

pub(super) fn json(stats: &mut Statistics) -> Value {
    let [client, agent] = stats.sent;
    let counts = |(frames, bytes): (u64, u64)| json!({"frames": frames, "bytes": bytes});
    let methods: Vec<Value> = stats
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
        "lasted": stats.lasted as f64 / 1e6,
        "client": counts(client),
        "agent": counts(agent),
        "turns": times(&mut stats.turns),
        "stop_reasons": stats.stop_reasons,
        "first_update": times(&mut stats.first_update),
        "permission": times(&mut stats.permission),
        "methods": methods,
        "updates": stats.updates,
        "rules": stats.rules,
        "notes": stats.notes,
        "links": stats.links,
        "noise": stats.noise,
        "stderr_bytes": stats.stderr,
        "missing_events": stats.missing_events,
    })
}

pub(super) fn text(stats: &mut Statistics, paint: Paint) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    let [(client_frames, client_bytes), (agent_frames, agent_bytes)] = stats.sent;
    line(&format!(
        "{}: client {client_frames} messages, {}; agent {agent_frames} messages, {}",
        duration(stats.lasted),
        size(client_bytes),
        size(agent_bytes)
    ));
    line("");
    let heads = format!(
        "{:<42}{:>6}{:>10}{:>10}{:>10}",
        "", "count", "p50", "p99", "max"
    );
    line(&paint.tone(Tone::Strong, &heads));
    for (name, times) in [
        ("turn", &mut stats.turns),
        ("first update of a turn", &mut stats.first_update),
        ("wait for permission", &mut stats.permission),
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
        let mut methods = stats.methods.iter_mut();
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
        ("stop reasons", &stats.stop_reasons),
        ("updates", &stats.updates),
        ("rules", &stats.rules),
        ("notes", &stats.notes),
        ("links", &stats.links),
    ] {
        if !counts.is_empty() {
            line("");
            line(&paint.tone(Tone::Strong, title));
            line(&list(counts));
        }
    }
    for (count, what) in [
        (stats.noise, "lines that were no message"),
        (stats.stderr, "bytes on stderr"),
        (stats.missing_events, "events missing in gaps"),
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

fn durations(times: &mut Durations) -> String {
    let mut out = String::new();
    for percent in [50, 99, 100] {
        let shown = times.percentile(percent).map(duration).unwrap_or_default();
        // Writing to a string does not fail.
        let _ = write!(out, "{shown:>10}");
    }
    out
}

fn times(times: &mut Durations) -> Value {
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
