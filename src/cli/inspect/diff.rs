//! `acp-relay inspect diff`: whether two recordings hold the same conversation.
//!
//! `recording::canonical` compares; ids, times and chunk boundaries do not count.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::select::{self, Part, Selection};
use crate::cli::console::Output;
use crate::cli::text::{Paint, Tone};
use analysis::text::excerpt;
use jsonrpc::Kind;
use recording::canonical::{Difference, Step, Steps, compare};
use recording::patch::changes;
use recording::redact::PointerPattern;
use recording::{View, ViewFilter, show_halves_json};

/// The arguments of `inspect diff`.
#[derive(Debug, Args)]
pub(super) struct Diff {
    /// A recording
    #[arg(value_name = "A")]
    left: PathBuf,
    /// Another one
    #[arg(value_name = "B")]
    right: PathBuf,
    /// Which messages to compare
    #[arg(long, value_parser = select::view(), default_value = "received")]
    at: View,
    /// Ignore this place in params, results and errors, such as /update/used; `*` is any one step
    #[arg(long, value_name = "POINTER")]
    ignore: Vec<PointerPattern>,
    /// One JSON object a line: only (a or b), n and step; or changed (both numbers), step and patch
    /// (RFC 6902); none if the conversations are the same
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Diff) -> Result<ExitCode, ExitCode> {
    // Both are read, so that both are reported if they cannot be.
    let (left, right) = (load(&args.left, args.at), load(&args.right, args.at));
    let (left, right) = (left?, right?);
    let mut found = compare(&left, &right);
    found.retain_mut(|difference| match difference {
        Difference::Changed {
            patch: Value::Array(patch),
            ..
        } => {
            patch.retain(|change| !is_ignored(change, &args.ignore));
            !patch.is_empty()
        }
        _ => true,
    });
    let mut output = Output::new();
    let paint = output.paint;
    for difference in &found {
        let (json, lines) = match difference {
            Difference::Missing(at) => only(("a", '-', Tone::Bad), &left[*at], paint),
            Difference::Extra(at) => only(("b", '+', Tone::Agent), &right[*at], paint),
            Difference::Changed {
                left: a,
                right: b,
                patch,
            } => {
                let (a, b) = (&left[*a], &right[*b]);
                let heading = format!("  {} / {}", title(a), b.n);
                let mut lines = vec![paint.line(0, Some(Tone::Strong), &heading)];
                for change in changes(&a.json(), patch) {
                    lines.extend(paint.change("  ", &change.at, &change));
                }
                let json = json!({"changed": [a.n, b.n], "step": a.json(), "patch": patch});
                (json, lines)
            }
        };
        match args.json {
            true => output.line(&*show_halves_json(&json.to_string())),
            false => lines.iter().for_each(|line| output.line(line)),
        }
    }
    if !args.json {
        let (a, b) = (left.len(), right.len());
        let line = match found.len() {
            0 => format!("the same conversation, in {a} steps"),
            count => format!("{count} differences; {a} steps and {b}"),
        };
        output.line(paint.tone(Tone::Strong, &line));
    }
    Ok(output.done(u8::from(!found.is_empty())))
}

/// A step that one of the recordings alone has.
fn only(
    (which, sign, tone): (&str, char, Tone),
    step: &Step,
    paint: Paint,
) -> (Value, Vec<String>) {
    let line = paint.line(0, Some(tone), &format!("{sign} {}", title(step)));
    let json = json!({"only": which, "n": step.n, "step": step.json()});
    (json, vec![line])
}

/// The steps of a recording.
fn load(file: &Path, at: View) -> Result<Vec<Step>, ExitCode> {
    let selection = Selection {
        file: file.to_owned(),
        filter: None,
    };
    let opened = selection.open(ViewFilter::new_empty(at))?;
    let mut steps = Steps::default();
    opened.each_in_order(|part| {
        if let Part::Event(event) = part {
            steps.add(&opened.view, event);
        }
    })?;
    Ok(steps.finish())
}

fn is_ignored(change: &Value, ignored: &[PointerPattern]) -> bool {
    let path = change["path"].as_str().unwrap_or_default();
    path.strip_prefix("/body")
        .is_some_and(|path| ignored.iter().any(|place| place.contains(path)))
}

/// A step in one line.
fn title(step: &Step) -> String {
    let kind = step.kind.map_or("no message", Kind::name);
    let number = step
        .number
        .map_or_else(String::new, |number| format!("#{number}"));
    let method = excerpt(step.method.as_bytes());
    let update = &step.body["update"];
    let text = update
        .pointer("/content/text")
        .or_else(|| update.get("title"));
    let update = update["sessionUpdate"].as_str().unwrap_or_default();
    let more = match text.and_then(Value::as_str) {
        _ if step.kind.is_none() => step.body.as_str().unwrap_or_default().to_owned(),
        Some(text) => format!("{update}: {text}"),
        None => update.to_owned(),
    };
    let session = step.session.as_deref().unwrap_or_default();
    let mut words = vec![kind, &method, &number, session];
    words.retain(|word| !word.is_empty());
    let more = excerpt(more.as_bytes());
    let line = format!("{:>6} {} {} {more}", step.n, step.from, words.join(" "));
    line.trim_end().to_owned()
}
