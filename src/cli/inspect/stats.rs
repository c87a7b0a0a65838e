//! `acp-relay inspect stats`: `counts and durations of conversations, as `statistics` has them.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::paint::{Paint, Tone};
use super::recordings::Recordings;
use super::select::{Part, Selection};
use super::statistics::{Durations, Method, Statistics, Traffic};
use super::units::{duration, excerpt, size};
use crate::cli::exit;
use crate::cli::inputs::Inputs;
use crate::recording::{View, ViewFilter};

/// Maximum width of a line of counts.
const WIDTH: usize = 78;

/// The arguments of `inspect stats`.
#[derive(Debug, Args)]
pub(super) struct Stats {
    #[command(flatten)]
    sources: Inputs,
    /// Which messages to count
    #[arg(long, value_enum, default_value = "client")]
    at: View,
    /// One JSON object a file: file, lasted, client, agent (frames, bytes), turns, first_update,
    /// permission (count, p50, p99, max; in seconds), stop_reasons, methods (a list: from, method,
    /// requests, notifications, errors, unanswered, took, bytes), updates, rules, notes, links,
    /// noise, stderr_bytes, missing_events
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Stats) -> Result<ExitCode, ExitCode> {
    let mut recordings = Recordings::of(args.sources.read()?);
    recordings.each(|to, selection| {
        let stats = count(selection, args.at)?;
        if args.json {
            let mut value = json!(stats);
            value["file"] = selection.file.display().to_string().into();
            to.output.line(value.to_string().as_bytes());
        } else {
            to.head(selection);
            let text = text(&stats, to.paint);
            to.output.bytes(text.as_bytes());
        }
        Ok(())
    });
    Ok(recordings.done(exit::SUCCESS))
}

fn count(selection: &Selection, at: View) -> Result<Statistics, ExitCode> {
    let chosen = selection.open(ViewFilter::new_empty(at))?;
    let mut stats = Statistics::of(at);
    chosen.each(|part, in_view| {
        if let Part::Event(event) = part {
            stats.count_rules(event);
            if in_view {
                stats.count(event);
            }
        }
    })?;
    Ok(stats)
}

/// Statistics as text.
fn text(stats: &Statistics, paint: Paint) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    let sent = |sent: &Traffic| format!("{} messages, {}", sent.frames, size(sent.bytes));
    let (client, agent) = (sent(&stats.client), sent(&stats.agent));
    line(&format!(
        "{}: client {client}; agent {agent}",
        duration(stats.lasted)
    ));
    line("");
    let heads = format!(
        "{:<42}{:>6}{:>10}{:>10}{:>10}",
        "", "count", "p50", "p99", "max"
    );
    line(&paint.tone(Tone::Strong, &heads));
    for (name, times) in [
        ("turn", &stats.turns),
        ("first update of a turn", &stats.first_update),
        ("wait for permission", &stats.permission),
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
        let of_side = |((from, _), _): &(&(&str, String), _)| *from == side;
        let mut methods = stats.methods.iter().filter(of_side).peekable();
        if methods.peek().is_some() {
            let heads = heads.replacen("method", &format!("{side:<6}"), 1);
            line(&paint.tone(Tone::Strong, &heads));
        }
        for ((_, name), method) in methods {
            let row = row(name, method);
            line(&match method.errors {
                0 => row,
                _ => paint.tone(Tone::Odd, &row),
            });
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
        (stats.stderr_bytes, "bytes on stderr"),
        (stats.missing_events, "events missing in gaps"),
    ] {
        if count > 0 {
            line(&format!("{count} {what}"));
        }
    }
    out
}

fn row(name: &str, method: &Method) -> String {
    let blank = |count: u64| match count {
        0 => String::new(),
        count => count.to_string(),
    };
    format!(
        "{:<28}{:>6}{:>5}{:>5}{:>5}{}",
        excerpt(name.as_bytes()),
        blank(method.requests),
        blank(method.errors),
        blank(method.unanswered()),
        blank(method.notifications),
        durations(&method.times),
    )
}

fn durations(times: &Durations) -> String {
    times
        .percentiles()
        .map(|micros| format!("{:>10}", micros.map(duration).unwrap_or_default()))
        .concat()
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
