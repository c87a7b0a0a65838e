//! `acp-relay translate`: translates messages from one dialect into another, line by line.
//!
//! Lines that are no message are copied. Notes of the rules (dropped, answered, untranslatable,
//! permission repaired) go to stderr. `recording::capture` reads the lines, `pipeline` translates,
//! and `explain` describes a change.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::explain::{Explanation, told};
use super::passage::{Carried, Pair, Passage, Stage};
use super::shelf::{Shelf, Tables, Trouble};
use crate::acp::Conversation;
use crate::cli::console::Output;
use crate::cli::tongues::choice;
use crate::cli::{cli, console, exit};
use crate::conversation::Choice;
use crate::dialect::{Happened, Unknown};
use crate::jsonrpc::{Frame, Limits, Shape, Side, scan};
use crate::recording::capture::{self, Holds, Line, Lines, Place};

/// The arguments of `translate`.
#[derive(Debug, Args)]
#[command(after_help = "\
A file has one message a line, or is a capture of both sides, {\"dir\":\"c2a\",\"msg\":{…}}, with
\"a2c\" for the agent's messages. Lines that are no message are copied.

--from and --to translate a conversation that both sides held in one dialect into another.
--client and --agent translate the messages of each side for the other, as the relay would; the
relay's own answers are printed to stdout in a capture, to stderr otherwise.
A dialect that is not named is `canonical`, the stable v1 protocol itself. `auto` detects each
side's dialect from the initialize exchange, and reads tolerantly until then.
`acp-relay dialect list` lists the dialects.

Exit codes: 0 all translated; 1 a message could not be translated; 64 usage; 65 a table has faults;
66 a file cannot be read. Closing stdout early does not change the exit code.

Examples:
  acp-relay translate --from copilot-overseer --to canonical --explain talk.jsonl
  acp-relay translate --from auto talk.jsonl
      Canonical ACP from a dialect that is detected.")]
pub(in crate::cli) struct Translate {
    /// The dialect the conversation was held in, or `auto`
    #[arg(long, value_name = "DIALECT", value_parser = choice)]
    #[arg(required_unless_present_any = ["to", "client", "agent"], conflicts_with_all = ["client", "agent"])]
    from: Option<Choice>,
    /// The dialect to translate into
    #[arg(long, value_name = "DIALECT", value_parser = written, conflicts_with_all = ["client", "agent"])]
    to: Option<Choice>,
    /// The dialect the client speaks, or `auto`
    #[arg(long, value_name = "DIALECT", value_parser = choice)]
    client: Option<Choice>,
    /// The dialect the agent speaks, or `auto`
    #[arg(long, value_name = "DIALECT", value_parser = choice)]
    agent: Option<Choice>,
    /// The sender of plain lines, where neither dialect nor method shows it
    #[arg(long, value_enum, value_name = "SIDE")]
    speaker: Option<Speaker>,
    /// Explain each changed message on stderr: which rules changed it, why, and each place before
    /// and after
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
    /// The sender of plain lines.
    speaker: Option<Side>,
    /// Finds the sender by method and id where nothing else shows it.
    conversation: Conversation,
    limits: Limits,
    output: Output,
    /// Messages that could not be translated.
    failed: usize,
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &Translate) -> ExitCode {
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
        conversation: Conversation::new(false),
        limits: Limits::default(),
        output: Output::new(),
        failed: 0,
    };
    let file = if args.file == Path::new("-") {
        capture::unfolded(console::input())
    } else {
        capture::open(&args.file)
    };
    match file {
        Ok(file) => run.over(file),
        Err(error) => Trouble::file(&args.file, error).fail(),
    }
}

/// The pipeline, and the only side that speaks the dialect, if there is only one.
fn passage(args: &Translate, shelf: &Shelf) -> Result<(Passage, Option<Side>), Unknown> {
    let library = &shelf.library;
    let canonical = Choice::Canonical;
    let or_canonical = |choice| Option::unwrap_or(choice, &canonical);
    if args.client.is_some() || args.agent.is_some() {
        let (client, agent) = (args.client.as_ref(), args.agent.as_ref());
        let pair = Pair::new(library, or_canonical(client), or_canonical(agent))?;
        return Ok((Passage::Between(pair), None));
    }
    let (from, to) = (args.from.as_ref(), args.to.as_ref());
    let (from, to) = (or_canonical(from), or_canonical(to));
    let speaker = |choice: &Choice| match choice {
        Choice::Named(name) => library.table(name).ok()?.speaker,
        Choice::Canonical | Choice::Auto => None,
    };
    let passage = Passage::Whole {
        from: Box::new(Pair::new(library, from, from)?),
        to: Box::new(Pair::new(library, to, to)?),
    };
    Ok((passage, speaker(from).or_else(|| speaker(to))))
}

/// Parses the dialect to write, which cannot be detected.
fn written(text: &str) -> Result<Choice, String> {
    match choice(text) {
        Ok(Choice::Auto) => Err("`auto` works for reading only; name the dialect".to_owned()),
        Ok(choice) => Ok(choice),
    }
}

impl Run<'_> {
    fn over(mut self, input: impl BufRead) -> ExitCode {
        let mut at = 0;
        for line in Lines::new(input) {
            at += 1;
            let read = match line {
                Ok(line) if line.cut => Err("the line exceeds the message size limit".to_owned()),
                Ok(line) => Ok(line),
                Err(error) => Err(error.to_string()),
            };
            let done = match read {
                Ok(line) => self.line(&line),
                Err(why) => {
                    self.output.flush();
                    Err(cli::fail(exit::NO_INPUT, &format!("line {at}: {why}")))
                }
            };
            if let Err(code) = done {
                return code;
            }
            if !self.output.is_open() {
                break;
            }
        }
        self.output.done(u8::from(self.failed > 0))
    }

    fn line(&mut self, line: &Line) -> Result<(), ExitCode> {
        let Holds::Message {
            from,
            message,
            place,
        } = &line.holds
        else {
            self.output.line(&line.bytes);
            return Ok(());
        };
        let why = match scan(message, &self.limits) {
            // A line of a capture that recorded no message.
            _ if from.is_some() && place.is_none() => None,
            Shape::One(_) => return self.message(line, *from, message, place.as_ref()),
            Shape::Batch => Some("a batch".to_owned()),
            Shape::Bad(flaw) => Some(flaw.to_string()),
        };
        if let Some(why) = why.filter(|_| !self.args.json) {
            let at = line.number;
            console::remark(&format!(
                "acp-relay: line {at}: copied, because it is no message: {why}"
            ));
        }
        self.output.line(&line.bytes);
        Ok(())
    }

    fn message(
        &mut self,
        line: &Line,
        from: Option<Side>,
        frame: &Frame,
        place: Option<&Place>,
    ) -> Result<(), ExitCode> {
        let at = line.number;
        let from = from
            .or(self.speaker)
            .or_else(|| self.conversation.hear(None, frame).from);
        let Some(from) = from else {
            self.output.flush();
            let what = format!(
                "line {at}: the sender is unknown: add --speaker client or --speaker agent"
            );
            return Err(cli::fail(exit::USAGE, &what));
        };
        let carried = self.passage.carry(from, frame);
        self.tell(at, from, &carried);
        let same = |one: &Frame| one.as_bytes() == frame.as_bytes();
        for one in &carried.forward {
            match place {
                _ if same(one) => self.output.line(&line.bytes),
                Some(place) => {
                    let told = place.retell(&line.bytes, from, one.as_bytes());
                    self.output.line(&told);
                }
                None => self.output.line(one.as_bytes()),
            }
        }
        for one in &carried.back {
            match place {
                Some(place) => {
                    let told = place.retell(&line.bytes, from.other(), one.as_bytes());
                    self.output.line(&told);
                }
                None if self.args.json => {}
                None => {
                    let text = String::from_utf8_lossy(one.as_bytes());
                    console::remark(&format!(
                        "acp-relay: line {at}: the relay would answer with {text}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Reports the detected dialect and the translations.
    fn tell(&mut self, at: u64, from: Side, carried: &Carried) {
        if let Some(found) = &carried.recognised {
            if self.args.json {
                let (side, dialect, by) = (from.name(), &found.dialect, &found.by);
                let told =
                    json!({"line": at, "recognised": {"side": side, "dialect": dialect, "by": by}});
                console::remark(&told.to_string());
            } else {
                let (dialect, by) = (&found.dialect, &found.by);
                console::remark(&format!(
                    "acp-relay: line {at}: the {from} speaks {dialect}, as its {by} shows"
                ));
            }
        }
        for stage in &carried.stages {
            self.tell_stage(at, from, stage);
        }
    }

    /// Reports one translation, with as much detail as requested.
    fn tell_stage(&mut self, at: u64, from: Side, stage: &Stage) {
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
