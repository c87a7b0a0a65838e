//! `acp-relay translate`: translates messages from one dialect into another, line by line.
//!
//! Lines that are no message are copied. Notes of the rules (dropped, answered, untranslatable,
//! permission repaired) go to stderr. `recording::capture` reads the lines, and
//! `analysis::translate` translates them and describes a change.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::tables::{LoadError, Tables};
use crate::cli::console::Output;
use crate::cli::dialect_options::choice;
use crate::cli::variant::variant_of;
use crate::cli::{console, exit};
use acp::Checker;
use analysis::translate::{Explanation, Pipeline, PipelineOutput, note_text};
use conversation::offline::Stage;
use conversation::{Detection, DialectChoice};
use dialect::{DialectError, DialectEvent, Library};
use jsonrpc::{Frame, Limits, Scanned, Side, scan};
use recording::capture::{self, Line, LineContent, Lines, MessageSpan};

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
`acp-v2` is the draft of ACP v2, which is converted with the state of each session; the file has to
begin with the initialize exchange, and --explain shows nothing of the conversion.
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
    from: Option<DialectChoice>,
    /// The dialect to translate into
    #[arg(long, value_name = "DIALECT", value_parser = output_dialect, conflicts_with_all = ["client", "agent"])]
    to: Option<DialectChoice>,
    /// The dialect the client speaks, or `auto`
    #[arg(long, value_name = "DIALECT", value_parser = choice)]
    client: Option<DialectChoice>,
    /// The dialect the agent speaks, or `auto`
    #[arg(long, value_name = "DIALECT", value_parser = choice)]
    agent: Option<DialectChoice>,
    /// The sender of plain lines, where neither dialect nor method shows it
    #[arg(long, value_parser = variant_of::<Side>(), value_name = "SIDE")]
    speaker: Option<Side>,
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

/// A run over all lines.
struct Run<'a> {
    args: &'a Translate,
    library: Arc<Library>,
    pipeline: Pipeline,
    /// The sender of plain lines.
    speaker: Option<Side>,
    /// Finds the sender by method and id where nothing else shows it.
    conversation: Checker,
    limits: Limits,
    output: Output,
    /// Messages that could not be translated.
    failed: usize,
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &Translate) -> Result<ExitCode, ExitCode> {
    let library = Arc::new(args.tables.load()?);
    let (pipeline, speaker) =
        build_pipeline(args, &library).map_err(|unknown| exit::fail(exit::USAGE, &unknown))?;
    let run = Run {
        args,
        library,
        pipeline,
        speaker: args.speaker.or(speaker),
        conversation: Checker::new(false),
        limits: Limits::default(),
        output: Output::new(),
        failed: 0,
    };
    let file = if args.file == Path::new("-") {
        capture::expanded(console::input())
    } else {
        capture::open(&args.file)
    };
    run.process(file.map_err(|error| LoadError::file(&args.file, error).fail())?)
}

/// The pipeline, and the only side that speaks the dialect, if there is only one.
fn build_pipeline(
    args: &Translate,
    library: &Arc<Library>,
) -> Result<(Pipeline, Option<Side>), DialectError> {
    let [client, agent, from, to] = [&args.client, &args.agent, &args.from, &args.to]
        .map(|choice| choice.as_ref().unwrap_or(&DialectChoice::Canonical));
    if args.client.is_some() || args.agent.is_some() {
        return Ok((Pipeline::relay(library, client, agent)?, None));
    }
    Pipeline::convert(library, from, to)
}

/// Parses the dialect to write, which cannot be detected.
fn output_dialect(text: &str) -> Result<DialectChoice, String> {
    match choice(text) {
        Ok(DialectChoice::Auto) => {
            Err("`auto` works for reading only; name the dialect".to_owned())
        }
        Ok(choice) => Ok(choice),
    }
}

impl Run<'_> {
    fn process(mut self, input: impl BufRead) -> Result<ExitCode, ExitCode> {
        for (at, line) in (1..).zip(Lines::new(input)) {
            match line {
                Ok(line) if !line.cut => self.line(&line),
                Ok(_) => self.stop(
                    exit::NO_INPUT,
                    at,
                    "the line exceeds the message size limit",
                ),
                Err(error) => self.stop(exit::NO_INPUT, at, &error.to_string()),
            }?;
            if !self.output.is_open() {
                break;
            }
        }
        Ok(self.output.done(u8::from(self.failed > 0)))
    }

    /// Ends the run with an error about a line.
    fn stop(&mut self, code: u8, at: u64, why: &str) -> Result<(), ExitCode> {
        self.output.flush();
        Err(exit::fail(code, &format!("line {at}: {why}")))
    }

    fn line(&mut self, line: &Line) -> Result<(), ExitCode> {
        let LineContent::Message {
            from,
            message,
            span: place,
        } = &line.content
        else {
            self.output.line(&line.bytes);
            return Ok(());
        };
        let why = match scan(message, &self.limits) {
            // A line of a capture that recorded no message.
            _ if from.is_some() && place.is_none() => None,
            Scanned::Message(_) => return self.message(line, *from, message, place.as_ref()),
            Scanned::Batch => Some("a batch".to_owned()),
            Scanned::Invalid(error) => Some(error.to_string()),
        };
        if let Some(why) = why {
            self.note(
                line.number,
                &format!("copied, because it is no message: {why}"),
            );
        }
        self.output.line(&line.bytes);
        Ok(())
    }

    fn message(
        &mut self,
        line: &Line,
        from: Option<Side>,
        frame: &Frame,
        place: Option<&MessageSpan>,
    ) -> Result<(), ExitCode> {
        let at = line.number;
        let from = from
            .or(self.speaker)
            .or_else(|| self.conversation.check(None, frame).from);
        let Some(from) = from else {
            let why = "the sender is unknown: add --speaker client or --speaker agent";
            return self.stop(exit::USAGE, at, why);
        };
        let micros = line.micros().unwrap_or(0);
        let output = self.pipeline.translate(from, frame, micros);
        self.report(at, from, &output);
        for one in &output.forward {
            match place {
                _ if one.as_bytes() == frame.as_bytes() => self.output.line(&line.bytes),
                Some(place) => {
                    let rendered = place.with_message(&line.bytes, from, one.as_bytes());
                    self.output.line(&rendered);
                }
                None => self.output.line(one.as_bytes()),
            }
        }
        for one in &output.back {
            match place {
                Some(place) => {
                    let rendered = place.with_message(&line.bytes, from.other(), one.as_bytes());
                    self.output.line(&rendered);
                }
                None => {
                    let text = String::from_utf8_lossy(one.as_bytes());
                    self.note(at, &format!("the relay would answer with {text}"));
                }
            }
        }
        Ok(())
    }

    /// Prints a line on stderr, unless that has JSON.
    fn note(&self, at: u64, what: &str) {
        if !self.args.json {
            console::note(&format!("acp-relay: line {at}: {what}"));
        }
    }

    /// Reports the detected dialect and the translations.
    fn report(&mut self, at: u64, from: Side, output: &PipelineOutput) {
        let mut stages = output.stages.iter();
        if let Some(Detection { dialect, by }) = stages.find_map(|stage| stage.recognised.as_ref())
        {
            self.note(
                at,
                &format!("the {from} speaks {dialect}, as its {by} shows"),
            );
            if self.args.json {
                let found = json!({"side": from.name(), "dialect": dialect, "by": by});
                console::note(&json!({"line": at, "recognised": found}).to_string());
            }
        }
        for stage in &output.stages {
            self.report_stage(at, from, stage);
        }
    }

    /// Reports one translation, with as much detail as requested.
    fn report_stage(&mut self, at: u64, from: Side, stage: &Stage) {
        let notes = || stage.outcome.notes.iter();
        self.failed += notes()
            .filter(|note| note.what == DialectEvent::Untranslatable)
            .count();
        if !self.args.explain {
            for note in notes().filter(|note| note.what != DialectEvent::Unmatched) {
                self.note(at, &note_text(note));
            }
        } else if let Some(explanation) = Explanation::of(at, from, stage, &self.library) {
            match self.args.json {
                true => console::note(&explanation.json().to_string()),
                false => console::note(explanation.text().trim_end()),
            }
        }
    }
}
