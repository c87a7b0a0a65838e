//! stdin and stdout of the subcommands that read and print data for a person or a program.
//!
//! A reader that closes stdout early (`| head`) is not an error.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use super::log_redaction::clean;
use super::text::Paint;
use super::{exit, progress};

/// Why a file cannot be used, as text for the user.
pub(super) fn explain(error: &io::Error) -> String {
    // An error without a code has a text of ours.
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::NotFound, Some(_)) => "there is no such file".to_owned(),
        (io::ErrorKind::AlreadyExists, Some(_)) => "it exists already".to_owned(),
        _ => error.to_string(),
    }
}

/// Prints that a file cannot be read, and returns the exit code.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> ExitCode {
    unusable(exit::NO_INPUT, path, error)
}

/// Prints that a file cannot be written, or exists already, and returns the exit code.
pub(super) fn uncreatable(path: &Path, error: &io::Error) -> ExitCode {
    unusable(exit::CANNOT_CREATE, path, error)
}

fn unusable(code: u8, path: &Path, error: &io::Error) -> ExitCode {
    exit::fail(code, &format!("{}: {}", path.display(), explain(error)))
}

/// Our stdout, buffered.
pub(super) struct Output {
    to: io::BufWriter<Stdout>,
    failed: Option<io::Error>,
    pub(super) paint: Paint,
}

/// Our stdout, from whose terminal a display of progress is erased before anything is printed.
struct Stdout(io::Stdout);

impl Output {
    pub(super) fn new() -> Self {
        Self {
            to: io::BufWriter::new(Stdout(io::stdout())),
            failed: None,
            paint: Paint::of(size().map(|[columns, _]| columns)),
        }
    }

    /// Prints the bytes and a line break.
    pub(super) fn line(&mut self, bytes: impl AsRef<[u8]>) {
        self.bytes(bytes);
        self.bytes("\n");
    }

    /// Prints a line that may quote secrets, without them, and flushes.
    pub(super) fn clean_line(&mut self, line: &str) {
        self.line(clean(line).as_bytes());
        self.flush();
    }

    /// Prints the bytes.
    pub(super) fn bytes(&mut self, bytes: impl AsRef<[u8]>) {
        if self.failed.is_none() {
            self.failed = self.to.write_all(bytes.as_ref()).err();
        }
    }

    /// The columns of the terminal that stdout is; `None` if it is not a terminal.
    pub(super) fn columns(&self) -> Option<usize> {
        size().map(|[columns, _]| columns)
    }

    /// Flushes what has been printed so far.
    pub(super) fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.to.flush().err();
        }
    }

    /// Whether stdout still accepts output.
    pub(super) const fn is_open(&self) -> bool {
        self.failed.is_none()
    }

    /// The exit code of a finished subcommand: `code`, unless printing failed.
    pub(super) fn done(mut self, code: u8) -> ExitCode {
        self.flush();
        printed(code, self.failed.map_or(Ok(()), Err))
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        progress::erase();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The exit code of a subcommand that has printed by other means than `Output`.
pub(super) fn printed(code: u8, done: io::Result<()>) -> ExitCode {
    match done.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            exit::fail(exit::SYSTEM, &format!("cannot print: {error}"))
        }
        _ => ExitCode::from(code),
    }
}

/// Prints a line for the person at the terminal. A closed stdout is not an error.
///
/// # Errors
/// The line cannot be printed for another reason.
pub(super) fn show(line: &str) -> io::Result<()> {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Prints a text, which ends with a line break, as the only output.
pub(super) fn print(text: &str, code: u8) -> ExitCode {
    let mut output = Output::new();
    output.line(text.trim_end_matches('\n').as_bytes());
    output.done(code)
}

/// Prints a JSON value for a program.
pub(super) fn print_json(value: &serde_json::Value, code: u8) -> ExitCode {
    print(&format!("{value:#}"), code)
}

/// Prints on stderr a note that belongs to the printed output, synchronously and in full. Errors
/// are ignored.
pub(super) fn note(text: &str) {
    progress::erase();
    // One call, so that no line of the log is written into it.
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Our stdin.
pub(super) fn input() -> impl BufRead {
    io::stdin().lock()
}

/// The next line of our stdin, without its line break; `None` at its end.
pub(super) fn input_line() -> Option<String> {
    let mut line = String::new();
    let count = io::stdin().lock().read_line(&mut line).ok()?;
    (count > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Whether a person types our stdin.
pub(super) fn input_is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Columns and rows of the terminal that stdout is; `None` if it is not a terminal.
pub(super) fn size() -> Option<[usize; 2]> {
    let stdout = io::stdout();
    stdout.is_terminal().then(|| {
        // A terminal that does not report its size is assumed to have the smallest usual one.
        match rustix::termios::tcgetwinsize(&stdout) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                [size.ws_col, size.ws_row].map(usize::from)
            }
            _ => [80, 24],
        }
    })
}

/// Draws a screen on the terminal that stdout is. Errors are ignored.
pub(super) fn draw_screen(screen: &str) {
    let mut stdout = io::stdout();
    let _ = stdout.write_all(screen.as_bytes());
    let _ = stdout.flush();
}
