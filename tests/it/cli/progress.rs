//! The progress of long work, on a terminal.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, mkfifoat};

use crate::support::program::relay;
use crate::support::terminal::Terminal;

/// Writes messages into the pipe at `path` while `goes_on`.
fn feed(path: &Path, goes_on: impl Fn() -> bool + Send + 'static) {
    let path = path.to_owned();
    thread::spawn(move || {
        let message = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#;
        let mut pipe = File::options().write(true).open(path).unwrap();
        while goes_on() && writeln!(pipe, "{message}").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
}

/// Whether a time has passed that is long enough for a display of progress.
fn within_display_time() -> impl Fn() -> bool {
    let begun = Instant::now();
    move || begun.elapsed() < Duration::from_millis(1500)
}

#[test]
fn long_work_shows_its_progress_at_a_terminal_and_erases_it() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RWXU).unwrap();
    let made = folder.path().join("made.acpr");
    let [input, made] = [&pipe, &made].map(|path| path.to_str().unwrap());
    let import = ["inspect", "import", input, made];
    for args in [&["check", input][..], &import] {
        let seen = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&seen);
        feed(&pipe, move || !until.load(Relaxed));
        let mut command = relay(args);
        command.env("TERM", "xterm");
        let mut terminal = Terminal::start(command);
        terminal.expect(" MiB read");
        seen.store(true, Relaxed);
        let (printed, status) = terminal.end();
        assert!(status.success(), "{printed}");
        let (_, result) = printed.rsplit_once(" MiB read").unwrap();
        assert!(
            result.starts_with("\x1b[K") && result.ends_with('\n'),
            "{printed}"
        );
    }
    feed(&pipe, within_display_time());
    let mut command = relay(&["check", "--json", input]);
    command.env("TERM", "xterm");
    let (printed, _) = Terminal::start(command).end();
    assert!(!printed.contains("read"), "{printed}");
    feed(&pipe, within_display_time());
    let piped = relay(&["check", input]).output().unwrap();
    assert!(
        piped.status.success() && piped.stderr.is_empty(),
        "{piped:?}"
    );
}
