//! `acp-relay test`: replays recordings as tests of an agent, a new agent for each.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;

use super::accept::accept;
use super::options::{self, Play, explain};
use super::report;
use crate::cli::console::Output;
use crate::cli::junit;
use crate::cli::text::Tone;
use crate::cli::{console, exit, recordings, stderr};
use analysis::junit::Suite;
use analysis::text::counted;
use jsonrpc::printable;
use recording::redact::PointerPattern;
use recording::{self, PACKED, PLAIN, Recording, is_locked, verify};
use replay::{PlayTarget, Script, ScriptFault};

/// Shown below `--help`.
pub(in crate::cli) const EXAMPLES: &str = "\
Examples:
  acp-relay test recordings -- goose acp
      Send the recorded requests of each recording in the folder to a new agent. Exit code 0 if all
      answers are as recorded.
  acp-relay test recordings --compare tools --agent claude
      Only the tool calls must be the same, for a live model.
  acp-relay test recordings --update -- goose acp
      Accept the new answers.
  acp-relay test recordings --junit report.xml --agent ws://127.0.0.1:9000
      For CI: a test suite for each recording, in it a test case for each turn.

A folder may have a file acp-relay.test.toml; options of the command line override it. Its agent is a
program that is run, so look at the folder of someone else first, or name an agent yourself; the agent
of a file is printed before it is started.
  compare = \"shape\"
  ignore = [\"/params/update/rawOutput\"]
  ignore-message = [\"session_info_update\"]
  command = [\"goose\", \"acp\"]    # or agent = \"goose\", a name or an endpoint
  cwd = \".\"                      # relative to the folder
  settle = \"1s\"
  response-timeout = \"60s\"
  edge = \"agent\"

How an agent is played to, and what is never compared, is in `acp-relay replay client --help`.

Exit codes: 0 all passed; 1 a test failed; 64 usage; 66 a folder without recordings; 69 no agent;
78 a fault in acp-relay.test.toml.";

/// The name of the file with the options of a folder.
const FILE: &str = "acp-relay.test.toml";

/// The arguments of `test`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Test {
    /// Folders of recordings and captures, without the folders in them; or recordings by path or name
    #[arg(value_name = "FOLDER", required = true)]
    places: Vec<PathBuf>,
    /// Replace each recording whose answers differ by the new conversation, redacted in the same mode
    #[arg(long)]
    update: bool,
    /// Also redact this place in replaced recordings; `*` is any one step
    #[arg(long, value_name = "POINTER", requires = "update")]
    redact_pointer: Vec<PointerPattern>,
    /// Also write the outcome as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    play: Play,
}

/// The run of all tests.
struct Run<'a> {
    args: &'a Test,
    output: Output,
    suites: Vec<Suite>,
    /// What is printed about failed tests at the end.
    failures: Vec<String>,
    passed: u64,
    updated: u64,
    failed: u64,
    skipped: u64,
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &Test) -> Result<ExitCode, ExitCode> {
    let began = Instant::now();
    let mut run = Run {
        args,
        output: Output::new(),
        suites: Vec::new(),
        failures: Vec::new(),
        passed: 0,
        updated: 0,
        failed: 0,
        skipped: 0,
    };
    let lost = args.places.iter().find_map(|place| run.place(place).err());
    match lost {
        Some(code) if run.suites.is_empty() => return Err(code),
        Some(_) => stderr::flush(),
        None => {}
    }
    if let Some(path) = &args.junit {
        junit::write(path, &run.suites)?;
    }
    let code = run.summary(began.elapsed());
    let done = run.output.done(code);
    Ok(lost.unwrap_or(done))
}

impl Run<'_> {
    /// Runs the tests of a folder, or the recording of that path or name.
    fn place(&mut self, place: &Path) -> Result<(), ExitCode> {
        let (own, tests, skipped) = match place.is_dir() {
            true => {
                let (tests, skipped) =
                    files(place).map_err(|error| console::unreadable(place, &error))?;
                (options::read(&place.join(FILE))?, tests, skipped)
            }
            false => {
                let path = recordings::locate(place)?;
                path.metadata()
                    .map_err(|error| console::unreadable(&path, &error))?;
                (Play::default(), vec![path], Vec::new())
            }
        };
        let play = options::merge(&self.args.play, own, place);
        let agent = play.agent("test FOLDER")?;
        if !self.args.play.has_agent() {
            let at = format!(
                "{}: the agent is {}",
                place.join(FILE).display(),
                agent.endpoint
            );
            self.line(Tone::Strong, &printable(at.as_bytes()));
        }
        let before = self.suites.len();
        for path in &tests {
            self.test(path, &play, &agent)?;
        }
        self.skipped += skipped.len() as u64;
        for what in &skipped {
            let line = format!("skipped {}", printable(what.as_bytes()));
            self.line(Tone::Faint, &line);
        }
        if self.suites.len() == before {
            let what = format!("{}: there is no recording to test with", place.display());
            return Err(exit::fail(exit::NO_INPUT, &what));
        }
        Ok(())
    }

    /// Runs one test. An agent that cannot be reached ends the run.
    fn test(&mut self, path: &Path, play: &Play, agent: &PlayTarget) -> Result<(), ExitCode> {
        let name = path.display().to_string();
        let shown = printable(name.as_bytes());
        let script = match load(path, play) {
            Ok(Some(script)) => Arc::new(script),
            Ok(None) => {
                self.skipped += 1;
                self.line(Tone::Faint, &format!("skipped {shown}: no recording"));
                return Ok(());
            }
            Err(fault) => {
                self.line(Tone::Strong, &format!("test {shown}"));
                let lines = vec![printable(fault.as_bytes())];
                self.end(Suite::unreadable(name, &fault), &lines, "");
                return Ok(());
            }
        };
        self.line(Tone::Strong, &format!("test {shown}"));
        let outcome = play.run(&script, agent, &mut |turn| {
            self.output.clean_line(&format!("  {turn}"));
        });
        let outcome = outcome.inspect_err(|_| {
            let suite = Suite::unreadable(name.clone(), "the agent could not be reached");
            self.suites.push(suite);
            self.failed += 1;
        })?;
        let size = format!(", {}", report::size(&outcome));
        let mut suite = report::suite(&name, &outcome);
        let mut lines = report::differences(&outcome, self.output.paint);
        if self.args.update && !outcome.is_same() && outcome.troubles.is_empty() {
            match accept(path, &outcome.live, &self.args.redact_pointer) {
                Ok(()) => {
                    suite.cases.iter_mut().for_each(|case| case.faults.clear());
                    self.suites.push(suite);
                    self.updated += 1;
                    self.line(Tone::Odd, &format!("  updated{size}"));
                    return Ok(());
                }
                Err(fault) => lines.push(format!("it is not updated: {fault}")),
            }
        }
        self.end(suite, &lines, &size);
        Ok(())
    }

    /// Prints the verdict of a test, of which `lines` say why it has failed, and counts it.
    fn end(&mut self, suite: Suite, lines: &[String], size: &str) {
        if lines.is_empty() {
            self.passed += 1;
            self.line(Tone::Agent, &format!("  ok{size}"));
        } else {
            self.failed += 1;
            self.line(Tone::Bad, &format!("  FAILED{size}"));
            let heading = format!("{}:", printable(suite.name.as_bytes()));
            self.failures
                .push(self.output.paint.tone(Tone::Strong, &heading));
            self.failures
                .extend(lines.iter().map(|line| format!("  {line}")));
            self.failures.push(String::new());
        }
        self.suites.push(suite);
    }

    /// Prints the failures and the counts; returns the exit code.
    fn summary(&mut self, took: Duration) -> u8 {
        self.output.line("");
        if !self.failures.is_empty() {
            self.output.line("failures:\n");
            for line in std::mem::take(&mut self.failures) {
                self.output.clean_line(&line);
            }
        }
        let (code, tone, verdict) = match self.failed {
            0 => (exit::SUCCESS, Tone::Agent, "ok"),
            _ => (exit::VIOLATIONS, Tone::Bad, "FAILED"),
        };
        let mut counts = format!("{} passed; {} failed", self.passed, self.failed);
        if self.args.update {
            counts += &format!("; {} updated", self.updated);
        }
        let verdict = self.output.paint.tone(tone, verdict);
        let (skipped, took) = (self.skipped, took.as_secs_f64());
        self.output.line(format!(
            "test result: {verdict}. {counts}; {skipped} skipped; finished in {took:.1} s"
        ));
        code
    }

    fn line(&mut self, tone: Tone, line: &str) {
        let line = self.output.paint.tone(tone, line);
        self.output.clean_line(&line);
    }
}

/// The recordings and captures in a folder, by name, and what is neither, with the reason.
fn files(folder: &Path) -> io::Result<(Vec<PathBuf>, Vec<String>)> {
    let (mut tests, mut skipped) = (Vec::new(), Vec::new());
    for recording in recording::recordings(folder)? {
        match recording.segments.last() {
            Some(last) if is_locked(last) => {
                skipped.push(format!("{}: it is still being written", last.display()));
            }
            last => tests.extend(last.cloned()),
        }
    }
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut others: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
    others.sort();
    for path in others {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_file = path.is_file();
        if name == FILE || name.starts_with('.') {
        } else if is_file && name.ends_with(".jsonl") {
            tests.push(path);
        } else if path.is_dir() {
            skipped.push(format!("{}: a folder", path.display()));
        } else if !is_file || !(name.ends_with(PLAIN) || name.ends_with(PACKED)) {
            skipped.push(format!("{}: no recording", path.display()));
        }
    }
    Ok((tests, skipped))
}

/// The conversation in a file; `None` if it is in no format that can be played.
///
/// # Errors
/// It is damaged, or cannot be read.
fn load(path: &Path, play: &Play) -> Result<Option<Script>, String> {
    let script = match play.open(path) {
        Ok(script) => script,
        Err(error) if matches!(error.reason, ScriptFault::Unknown) => return Ok(None),
        Err(error) => return Err(explain(&error.reason)),
    };
    let recording = Recording::of(path).map_err(|error| console::explain(&error))?;
    if recording.header().is_some() {
        let report = verify(&recording);
        if let Some(first) = report.findings.first() {
            let count = counted(report.findings.len() as u64, "defect");
            return Err(format!(
                "{count}, at byte {}: {}: {}",
                first.at, first.id, first.text
            ));
        }
    }
    Ok(Some(script))
}
