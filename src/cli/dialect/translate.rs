//! `acp-relay translate`: translates messages from one dialect into another, line by line.
//!
//! Lines that are no message are copied. Notes of the rules (dropped, answered, untranslatable,
//! permission repaired) go to stderr. `recording::capture` reads the lines, `pipeline` translates,
//! and `explain` describes a change.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::explain::{Explanation, note_text};
use super::pipeline::{Pipeline, PipelineOutput, Stage, TranslatorPair};
use super::tables::{LoadError, Tables};
use crate::acp::Checker;
use crate::cli::console::Output;
use crate::cli::dialect_options::choice;
use crate::cli::{console, exit};
use crate::conversation::DialectChoice;
use crate::dialect::{DialectError, DialectEvent, Library};
use crate::jsonrpc::{Frame, Limits, Scanned, Side, scan};
use crate::recording::capture::{self, Line, LineContent, Lines, MessageSpan};

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
    #[arg(long, value_enum, value_name = "SIDE")]
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
pub(in crate::cli) fn run(args: &Translate) -> ExitCode {
    let library = match args.tables.library() {
        Ok(library) => Arc::new(library),
        Err(error) => return error.fail(),
    };
    let (pipeline, speaker) = match build_pipeline(args, &library) {
        Ok(pipeline) => pipeline,
        Err(unknown) => return exit::fail(exit::USAGE, &unknown),
    };
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
    match file {
        Ok(file) => run.process(file),
        Err(error) => LoadError::file(&args.file, error).fail(),
    }
}

/// The pipeline, and the only side that speaks the dialect, if there is only one.
fn build_pipeline(
    args: &Translate,
    library: &Arc<Library>,
) -> Result<(Pipeline, Option<Side>), DialectError> {
    let canonical = DialectChoice::Canonical;
    let or_canonical = |choice| Option::unwrap_or(choice, &canonical);
    if args.client.is_some() || args.agent.is_some() {
        let (client, agent) = (args.client.as_ref(), args.agent.as_ref());
        let pair = TranslatorPair::new(library, or_canonical(client), or_canonical(agent))?;
        return Ok((Pipeline::Relay(pair), None));
    }
    let (from, to) = (args.from.as_ref(), args.to.as_ref());
    let (from, to) = (or_canonical(from), or_canonical(to));
    let speaker = |choice: &DialectChoice| match choice {
        DialectChoice::Named(name) => library.table(name).ok()?.speaker,
        DialectChoice::Canonical | DialectChoice::Auto => None,
    };
    let pipeline = Pipeline::Convert {
        from: Box::new(TranslatorPair::new(library, from, from)?),
        to: Box::new(TranslatorPair::new(library, to, to)?),
    };
    Ok((pipeline, speaker(from).or_else(|| speaker(to))))
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
    fn process(mut self, input: impl BufRead) -> ExitCode {
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
                    Err(exit::fail(exit::NO_INPUT, &format!("line {at}: {why}")))
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
        if let Some(why) = why.filter(|_| !self.args.json) {
            let at = line.number;
            console::note(&format!(
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
        place: Option<&MessageSpan>,
    ) -> Result<(), ExitCode> {
        let at = line.number;
        let from = from
            .or(self.speaker)
            .or_else(|| self.conversation.check(None, frame).from);
        let Some(from) = from else {
            self.output.flush();
            let what = format!(
                "line {at}: the sender is unknown: add --speaker client or --speaker agent"
            );
            return Err(exit::fail(exit::USAGE, &what));
        };
        let output = self.pipeline.translate(from, frame);
        self.report(at, from, &output);
        let same = |one: &Frame| one.as_bytes() == frame.as_bytes();
        for one in &output.forward {
            match place {
                _ if same(one) => self.output.line(&line.bytes),
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
                None if self.args.json => {}
                None => {
                    let text = String::from_utf8_lossy(one.as_bytes());
                    console::note(&format!(
                        "acp-relay: line {at}: the relay would answer with {text}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Reports the detected dialect and the translations.
    fn report(&mut self, at: u64, from: Side, output: &PipelineOutput) {
        if let Some(found) = &output.recognised {
            if self.args.json {
                let (side, dialect, by) = (from.name(), &found.dialect, &found.by);
                let object =
                    json!({"line": at, "recognised": {"side": side, "dialect": dialect, "by": by}});
                console::note(&object.to_string());
            } else {
                let (dialect, by) = (&found.dialect, &found.by);
                console::note(&format!(
                    "acp-relay: line {at}: the {from} speaks {dialect}, as its {by} shows"
                ));
            }
        }
        for stage in &output.stages {
            self.report_stage(at, from, stage);
        }
    }

    /// Reports one translation, with as much detail as requested.
    fn report_stage(&mut self, at: u64, from: Side, stage: &Stage) {
        self.failed += stage
            .notes
            .iter()
            .filter(|note| note.what == DialectEvent::Untranslatable)
            .count();
        if self.args.explain {
            if let Some(explanation) = Explanation::of(at, from, stage, &self.library) {
                if self.args.json {
                    console::note(&explanation.json().to_string());
                } else {
                    console::note(explanation.text().trim_end());
                }
            }
            return;
        }
        for note in stage
            .notes
            .iter()
            .filter(|note| note.what != DialectEvent::Unmatched)
        {
            console::note(&format!("acp-relay: line {at}: {}", note_text(note)));
        }
    }
}
