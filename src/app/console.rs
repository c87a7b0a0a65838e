//! What the subcommands that work as filters read and print: data for a person or a program.
//!
//! A reader that goes away early (`| head`) is no failure. Not here: the stdio that carries a
//! conversation (see `transport::stdio`).

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use super::{cli, exit};

/// Our stdout, buffered.
pub(super) struct Output {
    to: io::BufWriter<io::Stdout>,
    failed: Option<io::Error>,
}

impl Output {
    pub(super) fn new() -> Self {
        Self {
            to: io::BufWriter::new(io::stdout()),
            failed: None,
        }
    }

    /// Prints the bytes and a line break.
    pub(super) fn line(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            let done = self
                .to
                .write_all(bytes)
                .and_then(|()| self.to.write_all(b"\n"));
            self.failed = done.err();
        }
    }

    /// Prints the bytes.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.to.write_all(bytes).err();
        }
    }

    /// The columns of the terminal that stdout is; `None` when it is none.
    pub(super) fn columns(&self) -> Option<usize> {
        let stdout = self.to.get_ref();
        stdout.is_terminal().then(|| {
            let size = rustix::termios::tcgetwinsize(stdout).ok();
            let columns = size.map_or(0, |size| usize::from(size.ws_col));
            if columns == 0 { 80 } else { columns }
        })
    }

    /// Shows what has been printed so far.
    pub(super) fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.to.flush().err();
        }
    }

    /// Whether printing goes on to make sense.
    pub(super) const fn is_open(&self) -> bool {
        self.failed.is_none()
    }

    /// The exit code of a subcommand that is done, which is `code` unless printing failed.
    pub(super) fn done(mut self, code: u8) -> ExitCode {
        self.flush();
        match &self.failed {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                cli::fail(exit::SYSTEM, &format!("cannot print: {error}"))
            }
            _ => ExitCode::from(code),
        }
    }
}

/// Prints a text that ends with a line break, as all there is to say.
pub(super) fn print(text: &str, code: u8) -> ExitCode {
    let mut output = Output::new();
    output.line(text.trim_end_matches('\n').as_bytes());
    output.done(code)
}

/// Prints a value for a program to read.
pub(super) fn print_json(value: &serde_json::Value, code: u8) -> ExitCode {
    print(&format!("{value:#}"), code)
}

/// Says something on stderr that belongs to what is printed, in its place and in full. Nobody is
/// told when that is closed.
pub(super) fn remark(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Our stdin.
pub(super) fn input() -> impl BufRead {
    io::stdin().lock()
}
