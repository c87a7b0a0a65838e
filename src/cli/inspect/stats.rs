//! `acp-relay inspect stats`: counts and durations of conversations, which `analysis` collects.

use std::process::ExitCode;

use clap::Args;

use super::select::{self, Part, Recordings};
use crate::cli::exit;
use crate::cli::inputs::Inputs;
use crate::cli::text::{Paint, Tone};
use analysis::figures::{Durations, MethodFigures};
use analysis::text::{counted, duration, excerpt, size};
use analysis::{NameCounts, SentTotals, Statistics};
use recording::{View, ViewFilter};

/// Maximum width of a line of counts.
const WIDTH: usize = 78;

/// Number of the slowest tool calls that are printed.
const SLOWEST: usize = 5;

/// Maximum characters of a tool call's name.
const NAME: usize = 48;

/// The arguments of `inspect stats`.
#[derive(Debug, Args)]
pub(super) struct Stats {
    #[command(flatten)]
    sources: Inputs,
    /// Which messages to count
    #[arg(long, value_parser = select::view(), default_value = "client")]
    at: View,
    /// One JSON object a file: file, lasted, client, agent (frames, bytes), turns, first_update,
    /// permission, outages (count, p50, p90, p99, max; in seconds), stop_reasons, methods (a list:
    /// from, method, requests, notifications, errors, unanswered, took, bytes), slowest (the slowest
    /// tool calls: n, id, title, lasted), updates, rules, notes, links, noise, stderr_bytes,
    /// missing_events
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Stats) -> Result<ExitCode, ExitCode> {
    let mut recordings = Recordings::of(args.sources.read()?);
    recordings.each(|to, selection| {
        let mut stats = Statistics::new(args.at);
        let opened = selection.open(ViewFilter::new_empty(args.at))?;
        opened.each(|part, in_view| {
            if let Part::Event(event) = part {
                stats.add(event, in_view);
            }
        })?;
        if args.json {
            let file = selection.file.display().to_string();
            to.output.line(stats.json(&file).to_string());
            return Ok(());
        }
        to.head(selection);
        for line in lines(&stats, to.output.paint) {
            to.output.line(line.trim_end());
        }
        Ok(())
    });
    Ok(recordings.done(exit::SUCCESS))
}

/// The median, the 99th percentile and the maximum, as columns.
fn columns(times: &Durations) -> String {
    let [p50, _, p99, max] = times.percentiles();
    let column = |micros: Option<u64>| format!("{:>10}", micros.map(duration).unwrap_or_default());
    [p50, p99, max].map(column).concat()
}

/// `name count, name count`, in lines.
fn list(counts: &NameCounts) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (name, count) in counts {
        let item = format!("{} {count}", excerpt(name.as_bytes()));
        match lines.last_mut() {
            Some(line) if line.chars().count() + item.chars().count() + 4 <= WIDTH => {
                *line += &format!(", {item}");
                continue;
            }
            Some(line) => line.push(','),
            None => {}
        }
        lines.push(format!("  {item}"));
    }
    lines
}

/// The statistics as text.
fn lines(stats: &Statistics, paint: Paint) -> Vec<String> {
    const TIMES: &str = "       p50       p99       max";
    let strong = |text: &str| paint.tone(Tone::Strong, text);
    let sent = |sent: &SentTotals| format!("{} messages, {}", sent.frames, size(sent.bytes));
    let (client, agent) = (sent(&stats.client), sent(&stats.agent));
    let lasted = duration(stats.summary.lasted);
    let mut lines = vec![
        format!("{lasted}: client {client}; agent {agent}"),
        String::new(),
    ];
    lines.push(strong(&format!("{:<42}{:>6}{TIMES}", "", "count")));
    for (name, times) in [
        ("turn", &stats.figures.turns),
        ("first update of a turn", &stats.figures.first_updates),
        ("wait for permission", &stats.figures.permission),
    ] {
        lines.push(format!("{name:<42}{:>6}{}", times.count(), columns(times)));
    }
    lines.push(String::new());
    for side in ["client", "agent"] {
        let methods = stats.figures.methods.iter();
        let mut methods = methods.filter(|((from, _), _)| *from == side).peekable();
        if methods.peek().is_some() {
            let [count, fail, open, note] = ["count", "fail", "open", "note"];
            let heads = format!("{side:<28}{count:>6}{fail:>5}{open:>5}{note:>5}{TIMES}");
            lines.push(strong(&heads));
        }
        lines.extend(methods.map(|((_, name), own)| method_line(name, own, paint)));
    }
    for (title, counts) in [
        ("stop reasons", &stats.stop_reasons),
        ("updates", &stats.updates),
        ("rules", &stats.rules),
        ("notes", &stats.notes),
        ("links", &stats.links),
    ] {
        if !counts.is_empty() {
            lines.extend([String::new(), strong(title)]);
            lines.extend(list(counts));
        }
    }
    if !stats.figures.slowest.is_empty() {
        lines.extend([String::new(), strong("slowest tool calls")]);
    }
    for call in stats.figures.slowest.iter().take(SLOWEST) {
        let name = if call.title.is_empty() {
            &call.id
        } else {
            &call.title
        };
        let name: String = excerpt(name.as_bytes()).chars().take(NAME).collect();
        let lasted = duration(call.lasted);
        lines.push(format!("{lasted:>10}  {name} (event {})", call.n));
    }
    let outages = stats.outages();
    if outages.count() > 0 {
        let lasted = duration(outages.sum());
        let outages = counted(outages.count() as u64, "outage");
        lines.push(format!("{outages}, {lasted} in all"));
    }
    for (count, what) in [
        (stats.noise, "lines that were no message"),
        (stats.stderr_bytes, "bytes on stderr"),
        (stats.missing_events, "events missing in gaps"),
    ] {
        if count > 0 {
            lines.push(format!("{count} {what}"));
        }
    }
    lines
}

/// A method in one line.
fn method_line(name: &str, own: &MethodFigures, paint: Paint) -> String {
    let blank = |count: u64| match count {
        0 => String::new(),
        count => count.to_string(),
    };
    let line = format!(
        "{:<28}{:>6}{:>5}{:>5}{:>5}{}",
        excerpt(name.as_bytes()),
        blank(own.requests),
        blank(own.errors),
        blank(own.unanswered()),
        blank(own.notifications),
        columns(&own.took),
    );
    match own.errors {
        0 => line,
        _ => paint.tone(Tone::Odd, line.trim_end()),
    }
}
