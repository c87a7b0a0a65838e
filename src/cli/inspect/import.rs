//! `acp-relay inspect import`: makes recordings from captures of other programs.
//!
//! `analysis::import` reads a file, and makes the recording.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use serde_json::json;

use super::redact::RedactArgs;
use super::select::report_unreadable;
use crate::cli::console::{self, print, uncreatable};
use crate::cli::exit;
use crate::cli::progress::{self, Counted, Progress};
use crate::cli::random::{random, random_hex};
use analysis::import::import;
use observe::recorder::create;
use recording::redact::{Mode, Redactor};

/// The arguments of `inspect import`.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// A file, or `-` for stdin: a trace of the official conductor (.jsons), an export of
    /// acp-devtools, a HAR file, text copied from Zed's ACP log, a capture
    /// ({"dir":"c2a","ts":0.1,"msg":{…}}) or bare messages: one a line, pretty-printed, in an
    /// array, or with Content-Length headers; in UTF-8 or UTF-16
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// The recording, such as name.acpr, which must not exist yet
    #[arg(value_name = "OUT")]
    to: PathBuf,
    #[command(flatten)]
    redact: RedactArgs,
    /// Report as JSON: form, events, left_out, guessed, odd (lines that are no message)
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Import) -> Result<ExitCode, ExitCode> {
    let from: io::Result<Box<dyn Read>> = match args.from.as_os_str() == "-" {
        true => Ok(Box::new(console::input())),
        false => File::open(&args.from).map(|file| Box::new(file) as _),
    };
    let text = from.and_then(|from| {
        let _progress = (!args.json).then(|| Progress::start(0));
        let mut text = Vec::new();
        Counted(from).read_to_end(&mut text).map(|_| text)
    });
    let text = text.map_err(|error| report_unreadable(&args.from, &error))?;
    // The messages are first found, and then redacted and written.
    let length = text.len() as u64;
    let _progress = (!args.json).then(|| Progress::start(2 * length));
    let changed = fs::metadata(&args.from).and_then(|data| data.modified());
    let redactor = args.redact.redactor()?;
    let id = random_hex::<16>().map_err(|error| exit::fail(exit::SYSTEM, &error))?;
    let made = import(&text, changed.ok(), redactor, id, progress::advance)
        .map_err(|why| exit::fail(exit::DATA, &format!("{}: {why}", args.from.display())))?;
    let done = create(&args.to).and_then(|mut file| file.write_all(&made.lines));
    done.map_err(|error| uncreatable(&args.to, &error))?;
    let (capture, events) = (&made.capture, made.events);
    let (form, left_out, guessed) = (capture.format, capture.left_out, capture.guessed);
    if args.json {
        let done = json!({
            "form": form,
            "events": events,
            "left_out": left_out,
            "guessed": guessed,
            "odd": capture.odd,
        });
        return Ok(print(&done.to_string(), exit::SUCCESS));
    }
    let mut text = format!("{form}: {events} events");
    if left_out > 0 {
        text += &format!("; {left_out} lines that are no ACP message were left out");
    }
    if guessed > 0 {
        text += &format!("; the sender of {guessed} messages is a guess");
    }
    if capture.odd > 0 {
        text += &format!("; {} of them are no messages", capture.odd);
    }
    Ok(print(&text, exit::SUCCESS))
}

/// The recording that a capture is imported to without options; or why it is none.
pub(in crate::cli) fn of_capture(text: &[u8], changed: SystemTime) -> Result<Vec<u8>, String> {
    let random = random().and_then(|key| Ok((key, random_hex::<16>()?)));
    let (key, id) = random.map_err(|error| error.to_string())?;
    let redactor = Redactor::new(Mode::default(), Vec::new(), key);
    import(text, Some(changed), redactor, id, |_| ()).map(|made| made.lines)
}
