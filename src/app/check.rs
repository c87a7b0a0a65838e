//! `acp-relay check`: holds recorded conversations against the official ACP v1 schema.
//!
//! Not here: the schema (see `canon`), and how files are read (see `lines`).

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::lines::{Line, Lines};
use super::{cli, exit};
use crate::canon::{
    Conversation, Deviation, Kind, NoRemedies, Remedies, Role, Verdict, Weight, plain,
};
use crate::wire::Side;

/// What `--help` says after the options.
pub(super) const HELP: &str = "\
A file has one message a line: JSON-RPC as it passed on the wire, or a capture of both sides,
{\"dir\":\"c2a\",\"ts\":0.1,\"msg\":{…}}, with \"a2c\" for the agent's messages. Where a line does not say
who sent it, its method tells, and an answer is found by its id.

A deviation is either `refused`: a reader that is built on the official types refuses the message;
or `ignored`: such a reader goes on without the value.

Exit codes: 0 no deviation; 1 at least one; 64 usage; 66 a file cannot be read;
69 nobody reads stdout any more.";

/// How many groups the summary of a file keeps apart.
const GROUPS: usize = 1000;

/// What `check` is asked for.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// The files to read; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The files hold the messages of this side only
    #[arg(long, value_enum, value_name = "SIDE")]
    from: Option<From>,
    /// One JSON object for each deviation, and one for the summary, a line each
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum From {
    Client,
    Agent,
}

/// Why a file was not read to its end.
enum Failure {
    Read(io::Error),
    /// Whoever reads our stdout has gone.
    Write,
}

/// Deviations that are alike, but for the index in an array.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    kind: Kind,
    place: String,
    pointer: String,
}

/// What was found so far.
#[derive(Debug, Default)]
struct Tally {
    messages: u64,
    unchecked: u64,
    refused: u64,
    ignored: u64,
    kinds: BTreeMap<Kind, u64>,
    groups: BTreeMap<Group, u64>,
}

/// Runs the subcommand.
pub(super) fn run(args: &Check) -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut all = Tally::default();
    let mut unreadable = false;
    for path in &args.files {
        match file(args, path, &mut all, &mut out) {
            Ok(()) => {}
            Err(Failure::Read(error)) => {
                unreadable = true;
                cli::fail(
                    exit::NO_INPUT,
                    &format!("cannot read {}: {error}", path.display()),
                );
            }
            Err(Failure::Write) => return ExitCode::from(exit::UNAVAILABLE),
        }
    }
    let end = if args.json {
        writeln!(out, "{}", all.json())
    } else {
        Ok(())
    };
    if end.and_then(|()| out.flush()).is_err() {
        return ExitCode::from(exit::UNAVAILABLE);
    }
    match (unreadable, all.deviations()) {
        (true, _) => ExitCode::from(exit::NO_INPUT),
        (false, 0) => ExitCode::SUCCESS,
        (false, _) => ExitCode::from(exit::DEVIATES),
    }
}

fn file(args: &Check, path: &Path, all: &mut Tally, out: &mut impl Write) -> Result<(), Failure> {
    let reader: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(path).map_err(Failure::Read)?))
    };
    let mut tally = Tally::default();
    let done = conversation(args, path, reader, &mut tally, &mut NoRemedies, out);
    if !args.json {
        tally.print(path, out).map_err(|_| Failure::Write)?;
    }
    all.add(tally);
    done
}

/// Checks one conversation and prints its deviations; `remedies` name the rules that repair them.
fn conversation(
    args: &Check,
    path: &Path,
    reader: impl BufRead,
    tally: &mut Tally,
    remedies: &mut dyn Remedies,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut conversation = Conversation::new(args.from.is_some());
    for line in Lines::new(reader) {
        let line = line.map_err(Failure::Read)?;
        let verdict = conversation.hear(line.from.or_else(|| args.side()), &line.message);
        remedies.hear(verdict.from, &line.message);
        tally.message(&verdict);
        for deviation in &verdict.deviations {
            let rule = remedies.rule(deviation);
            let printed = if args.json {
                writeln!(
                    out,
                    "{}",
                    as_json(path, &line, &verdict, deviation, rule.as_deref())
                )
            } else {
                writeln!(
                    out,
                    "{}",
                    as_text(&line, &verdict, deviation, rule.as_deref())
                )
            };
            printed.map_err(|_| Failure::Write)?;
        }
    }
    Ok(())
}

impl Check {
    fn side(&self) -> Option<Side> {
        self.from.map(|from| match from {
            From::Client => Side::Client,
            From::Agent => Side::Agent,
        })
    }
}

fn as_json(
    path: &Path,
    line: &Line,
    verdict: &Verdict,
    deviation: &Deviation,
    rule: Option<&str>,
) -> Value {
    json!({
        "file": path.to_string_lossy(),
        "line": line.number,
        "side": verdict.from.map(Side::name),
        "role": verdict.role.map(Role::id),
        "method": verdict.method,
        "kind": deviation.kind.id(),
        "weight": deviation.weight.id(),
        "pointer": deviation.pointer,
        "found": deviation.found,
        "wants": deviation.wants,
        "rule": rule,
    })
}

fn as_text(line: &Line, verdict: &Verdict, deviation: &Deviation, rule: Option<&str>) -> String {
    let mut text = format!(
        "line {:<4} {:<6} {}  {}  {}  wants {}",
        line.number,
        verdict.from.map_or("?", Side::name),
        place(verdict),
        pointer(&deviation.pointer),
        deviation.kind,
        deviation.wants,
    );
    if let Some(found) = &deviation.found {
        text.push_str("; found ");
        text.push_str(found);
    }
    if deviation.weight == Weight::Ignored {
        text.push_str(" (ignored)");
    }
    if let Some(rule) = rule {
        text.push_str("; repaired by ");
        text.push_str(rule);
    }
    plain(&text)
}

/// The method, and whether this is its answer.
fn place(verdict: &Verdict) -> String {
    let method = verdict.method.as_deref().unwrap_or("-");
    match verdict.role {
        Some(Role::Result) => format!("{method} (result)"),
        Some(Role::Error) => format!("{method} (error)"),
        _ => method.to_owned(),
    }
}

const fn pointer(pointer: &str) -> &str {
    if pointer.is_empty() {
        "(all of it)"
    } else {
        pointer
    }
}

impl Tally {
    const fn deviations(&self) -> u64 {
        self.refused + self.ignored
    }

    fn message(&mut self, verdict: &Verdict) {
        self.messages += 1;
        self.unchecked += u64::from(!verdict.checked);
        for deviation in &verdict.deviations {
            match deviation.weight {
                Weight::Refused => self.refused += 1,
                Weight::Ignored => self.ignored += 1,
            }
            *self.kinds.entry(deviation.kind).or_default() += 1;
            let group = Group {
                kind: deviation.kind,
                place: place(verdict),
                pointer: without_indexes(&deviation.pointer),
            };
            if self.groups.len() < GROUPS || self.groups.contains_key(&group) {
                *self.groups.entry(group).or_default() += 1;
            }
        }
    }

    fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.unchecked += other.unchecked;
        self.refused += other.refused;
        self.ignored += other.ignored;
        for (kind, count) in other.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
    }

    fn json(&self) -> Value {
        let kinds: serde_json::Map<String, Value> = self
            .kinds
            .iter()
            .map(|(kind, count)| (kind.id().to_owned(), Value::from(*count)))
            .collect();
        json!({"summary": {
            "messages": self.messages,
            "unchecked": self.unchecked,
            "deviations": self.deviations(),
            "refused": self.refused,
            "ignored": self.ignored,
            "kinds": kinds,
        }})
    }

    fn print(&self, path: &Path, out: &mut impl Write) -> io::Result<()> {
        if !self.groups.is_empty() {
            writeln!(out)?;
        }
        let (name, deviations) = (path.display().to_string(), self.deviations());
        write!(out, "{}: {}", plain(&name), count(self.messages, "message"))?;
        if self.unchecked > 0 {
            write!(out, " ({} of no known type)", self.unchecked)?;
        }
        if deviations == 0 {
            return writeln!(out, ", no deviation");
        }
        let (refused, ignored) = (self.refused, self.ignored);
        let deviations = count(deviations, "deviation");
        writeln!(out, ", {deviations}: {refused} refused, {ignored} ignored")?;
        for (kind, total) in &self.kinds {
            writeln!(out, "{total:>6}  {kind}")?;
            for (group, count) in self.groups.iter().filter(|(group, _)| group.kind == *kind) {
                let text = format!("{}  {}", group.place, pointer(&group.pointer));
                writeln!(out, "{count:>14}  {}", plain(&text))?;
            }
        }
        Ok(())
    }
}

fn count(number: u64, thing: impl Display) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{ending}")
}

/// A pointer with `*` for each index, so that the items of an array count as one place.
fn without_indexes(pointer: &str) -> String {
    let steps: Vec<&str> = pointer
        .split('/')
        .map(|step| match step.parse::<u64>() {
            Ok(_) => "*",
            Err(_) => step,
        })
        .collect();
    steps.join("/")
}
