//! `acp-relay translate`: messages from one dialect into another, line by line, with context.
//!
//! What is no message is copied; what a rule says about a message (left out, answered, not
//! translatable, a permission repaired) is said on stderr, and nothing is lost in silence. Not
//! here: how a line is read (see `lines`), which translations it meets (see `passage`), and how
//! a change is explained (see `explain`).

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::explain::{Explanation, told};
use super::lines::{self, Line, Told};
use super::passage::{Pair, Passage, Stage};
use super::shelf::{Shelf, Tables, Trouble};
use crate::app::console::Output;
use crate::app::{cli, console, exit};
use crate::dialect::{Happened, Unknown};
use crate::wire::{Envelope, Frame, Limits, Side};

/// What `translate` is asked for.
#[derive(Debug, Args)]
#[command(after_help = "\
Lines are messages, or a transcript: {\"dir\":\"c2a\"|\"a2c\",\"msg\":MESSAGE,…}. What is no message is copied.
--from and --to translate a conversation that both sides held in one dialect into another.
--client and --agent translate what each side says for the other, as the relay would between them;
what the relay would answer by itself is printed in a transcript and said on stderr otherwise.
`canonical` is the stable v1 protocol itself, and the default for the dialect that is not named.

Exit codes: 0 all translated; 1 a message could not be translated; 64 usage; 65 a table has faults;
66 a file cannot be read.")]
pub(in crate::app) struct Translate {
    /// The dialect the conversation was held in
    #[arg(long, value_name = "NAME", required_unless_present_any = ["to", "client", "agent"], conflicts_with_all = ["client", "agent"])]
    from: Option<String>,
    /// The dialect it is wanted in
    #[arg(long, value_name = "NAME", conflicts_with_all = ["client", "agent"])]
    to: Option<String>,
    /// The dialect the client speaks
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// The dialect the agent speaks
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Whose messages plain lines are, where the dialect does not say so
    #[arg(long, value_enum, value_name = "SIDE")]
    speaker: Option<Speaker>,
    /// Say on stderr of each changed message which rules changed it, why, and what they touched
    #[arg(long)]
    explain: bool,
    /// Explain in JSON, one object a line
    #[arg(long, requires = "explain")]
    json: bool,
    #[command(flatten)]
    tables: Tables,
    /// The file to read; `-` is stdin
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
}

/// A side on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Speaker {
    Client,
    Agent,
}

/// A run over all lines.
struct Run<'a> {
    args: &'a Translate,
    shelf: &'a Shelf,
    passage: Passage,
    /// Whose messages plain lines are.
    speaker: Option<Side>,
    limits: Limits,
    output: Output,
    /// Messages that could not be translated.
    failed: usize,
}

/// Runs the subcommand.
pub(in crate::app) fn run(args: &Translate) -> ExitCode {
    let shelf = match Shelf::open(&args.tables) {
        Ok(shelf) => shelf,
        Err(trouble) => return trouble.fail(),
    };
    let (passage, speaker) = match passage(args, &shelf) {
        Ok(passage) => passage,
        Err(unknown) => return cli::fail(exit::USAGE, &unknown),
    };
    let run = Run {
        args,
        shelf: &shelf,
        passage,
        speaker: args.speaker.map(Speaker::side).or(speaker),
        limits: Limits::default(),
        output: Output::new(),
        failed: 0,
    };
    if args.file == Path::new("-") {
        return run.over(console::input());
    }
    match File::open(&args.file) {
        Ok(file) => run.over(BufReader::new(file)),
        Err(error) => Trouble::file(&args.file, error).fail(),
    }
}

/// The translations, and the only side that speaks, where there is only one.
fn passage(args: &Translate, shelf: &Shelf) -> Result<(Passage, Option<Side>), Unknown> {
    let program = |name: &Option<String>| {
        shelf
            .library
            .program(name.as_deref().unwrap_or("canonical"))
    };
    if args.client.is_some() || args.agent.is_some() {
        let pair = Pair::new(&program(&args.client)?, &program(&args.agent)?);
        return Ok((Passage::Between(pair), None));
    }
    let (from, to) = (program(&args.from)?, program(&args.to)?);
    let speaker = crate::dialect::speaker(&from).or_else(|| crate::dialect::speaker(&to));
    let passage = Passage::Whole {
        from: Pair::new(&from, &from),
        to: Pair::new(&to, &to),
    };
    Ok((passage, speaker))
}

impl Run<'_> {
    fn over(mut self, mut input: impl BufRead) -> ExitCode {
        let mut at = 0;
        while self.output.is_open() {
            at += 1;
            let line = match lines::next(&mut input, &self.limits) {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    self.output.flush();
                    return cli::fail(exit::NO_INPUT, &format!("line {at}: {error}"));
                }
            };
            match Line::parse(&line, &self.limits) {
                Line::Other(why) => {
                    if let Some(why) = why.filter(|_| !self.args.json) {
                        console::remark(&format!(
                            "acp-relay: line {at}: copied, for it is no message: {why}"
                        ));
                    }
                    self.output.line(&line);
                }
                Line::Message {
                    frame,
                    at: envelope,
                    told,
                } => {
                    if let Err(code) = self.message(at, &line, &frame, &envelope, told.as_ref()) {
                        return code;
                    }
                }
            }
        }
        self.output.done(u8::from(self.failed > 0))
    }

    fn message(
        &mut self,
        at: usize,
        line: &[u8],
        frame: &Frame,
        envelope: &Envelope,
        told: Option<&Told>,
    ) -> Result<(), ExitCode> {
        let Some(from) = told.map(|told| told.from).or(self.speaker) else {
            self.output.flush();
            let what = format!(
                "line {at}: whose message is this? say --speaker client or --speaker agent"
            );
            return Err(cli::fail(exit::USAGE, &what));
        };
        let carried = self.passage.carry(from, frame);
        for stage in &carried.stages {
            self.tell(at, from, stage);
        }
        let same = |one: &Frame| one.as_bytes() == frame.as_bytes();
        for one in &carried.forward {
            match told {
                _ if same(one) => self.output.line(line),
                Some(told) => self.output.line(&told.retell(line, from, one.as_bytes())),
                None => self.output.line(one.as_bytes()),
            }
        }
        for one in &carried.back {
            match told {
                Some(told) => self
                    .output
                    .line(&told.retell(line, from.other(), one.as_bytes())),
                None if self.args.json => {}
                None => {
                    let text = String::from_utf8_lossy(one.as_bytes());
                    let method = envelope.method(frame);
                    console::remark(&format!(
                        "acp-relay: line {at}: the relay would answer {method} with {text}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Says what was done, as much as was asked for.
    fn tell(&mut self, at: usize, from: Side, stage: &Stage) {
        self.failed += stage
            .notes
            .iter()
            .filter(|note| note.what == Happened::Untranslatable)
            .count();
        if self.args.explain {
            if let Some(explanation) = Explanation::of(at, from, stage, &self.shelf.library) {
                if self.args.json {
                    console::remark(&explanation.json().to_string());
                } else {
                    console::remark(explanation.text().trim_end());
                }
            }
            return;
        }
        for note in stage
            .notes
            .iter()
            .filter(|note| note.what != Happened::Unmatched)
        {
            console::remark(&format!("acp-relay: line {at}: {}", told(note)));
        }
    }
}

impl Speaker {
    const fn side(self) -> Side {
        match self {
            Self::Client => Side::Client,
            Self::Agent => Side::Agent,
        }
    }
}
