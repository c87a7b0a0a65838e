//! `acp-relay inspect lint`: where a conversation breaks the protocol.
//!
//! Not here: what is looked for, and how it is found (see `recording::lint`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::paint::{Paint, Tone};
use super::select::{At, Selection};
use super::units::{excerpt, place};
use crate::app::console::Output;
use crate::app::{cli, exit};
use crate::recording::filter::{Facts, Filter};
use crate::recording::lint::{Finding, Linter, RULES, Weight};
use crate::recording::{Event, Found, Scene};
use crate::wire::Side;

/// What `inspect lint` is asked for.
#[derive(Debug, Args)]
pub(super) struct Lint {
    /// The recording; of one in several segments, any of them
    #[arg(value_name = "FILE", required_unless_present = "list")]
    file: Option<PathBuf>,
    /// Which findings, such as `not lint:schema-*`
    #[arg(value_name = "FILTER")]
    filter: Option<Filter>,
    /// The rules, and what they look for
    #[arg(long)]
    list: bool,
    /// From where it is looked at
    #[arg(long, value_enum, default_value_t)]
    at: At,
    /// The least that makes the exit code 1
    #[arg(long, value_enum, value_name = "WEIGHT", default_value = "error")]
    fail_on: Least,
    /// One JSON object a line: n, t (seconds), id, weight, side, method, what; with --list id,
    /// weight, says
    #[arg(long)]
    json: bool,
}

/// The least weight that counts.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Least {
    /// Worth knowing
    Hint,
    /// Some peers will stumble over it
    Warning,
    /// It breaks the protocol
    Error,
}

/// Runs the subcommand.
pub(super) fn run(args: &Lint) -> ExitCode {
    let mut output = Output::new();
    let Some(file) = args.file.as_ref().filter(|_| !args.list) else {
        list(args.json, &mut output);
        return output.done(exit::SUCCESS);
    };
    let findings = match find(args, file.clone()) {
        Ok(findings) => findings,
        Err(code) => return code,
    };
    let paint = Paint::of(&output);
    let mut counts: BTreeMap<_, u64> = BTreeMap::new();
    for finding in &findings {
        *counts.entry(finding.rule.weight).or_default() += 1;
        let line = if args.json {
            as_json(finding)
        } else {
            as_text(finding, paint)
        };
        output.line(line.as_bytes());
    }
    let failed = findings
        .iter()
        .any(|f| f.rule.weight >= args.fail_on.weight());
    if !args.json {
        let count = |weight| counts.get(&weight).copied().unwrap_or(0);
        let (errors, warnings) = (count(Weight::Error), count(Weight::Warning));
        let hints = count(Weight::Hint);
        let line = format!("{errors} errors, {warnings} warnings, {hints} hints");
        output.line(paint.tone(Tone::Strong, &line).as_bytes());
    }
    output.done(if failed {
        exit::DEVIATES
    } else {
        exit::SUCCESS
    })
}

impl Least {
    const fn weight(self) -> Weight {
        match self {
            Self::Hint => Weight::Hint,
            Self::Warning => Weight::Warning,
            Self::Error => Weight::Error,
        }
    }
}

fn list(json: bool, output: &mut Output) {
    let paint = Paint::of(output);
    for rule in RULES {
        let line = if json {
            json!({"id": rule.id, "weight": rule.weight.name(), "says": rule.says}).to_string()
        } else {
            let weight = paint.tone(tone(rule.weight), &format!("{:<8}", rule.weight.name()));
            format!("{weight}{:<25}{}", rule.id, rule.says)
        };
        output.line(line.as_bytes());
    }
}

/// The findings that are meant.
fn find(args: &Lint, file: PathBuf) -> Result<Vec<Finding>, ExitCode> {
    let selection = Selection { file, filter: None };
    let chosen = selection.open(None)?;
    let unreadable = |error: std::io::Error| {
        cli::fail(
            exit::NO_INPUT,
            &format!("{}: {error}", selection.file.display()),
        )
    };
    let mut scene = Scene::of(args.at.view());
    for entry in chosen.entries() {
        if let Found::Event(event) = &entry.map_err(unreadable)?.1.found {
            scene.see(event);
        }
    }
    let mut linter = Linter::at(scene);
    for entry in chosen.entries() {
        match entry.map_err(unreadable)?.1.found {
            Found::Event(event) => {
                linter.see(&event);
            }
            Found::Header(header) => linter.begin(&header),
            Found::Broken(_) => {}
        }
    }
    let mut findings = linter.end();
    let Some(filter) = &args.filter else {
        return Ok(findings);
    };
    // The filter is asked about each finding by itself.
    let mut wanted = Vec::new();
    let mut rest = findings.drain(..).peekable();
    for entry in chosen.entries() {
        let Found::Event(event) = entry.map_err(unreadable)?.1.found else {
            continue;
        };
        while let Some(finding) = rest.next_if(|finding| finding.n <= event.n) {
            if is_wanted(filter, &event, &finding) {
                wanted.push(finding);
            }
        }
    }
    Ok(wanted)
}

fn is_wanted(filter: &Filter, event: &Event, finding: &Finding) -> bool {
    let facts = Facts {
        took: None,
        lint: &[finding.rule.id],
    };
    filter.matches(event, facts)
}

fn as_json(finding: &Finding) -> String {
    json!({
        "n": finding.n,
        "t": finding.t as f64 / 1e6,
        "id": finding.rule.id,
        "weight": finding.rule.weight.name(),
        "side": finding.side.map(Side::name),
        "method": finding.method,
        "what": finding.what,
    })
    .to_string()
}

fn as_text(finding: &Finding, paint: Paint) -> String {
    let weight = finding.rule.weight;
    let mut text = format!(
        "{:>6} {:>12}  {:<7} {} {}",
        finding.n,
        place(finding.t),
        weight.name(),
        finding.rule.id,
        finding.side.map_or("", Side::name),
    );
    for more in [finding.method.as_deref().unwrap_or_default(), &finding.what] {
        if !more.is_empty() {
            text += " ";
            text += &excerpt(more.as_bytes());
        }
    }
    paint.line(19, Some(tone(weight)), text.trim_end())
}

const fn tone(weight: Weight) -> Tone {
    match weight {
        Weight::Error => Tone::Bad,
        Weight::Warning => Tone::Odd,
        Weight::Hint => Tone::Faint,
    }
}
