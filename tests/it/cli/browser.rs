//! The browser that shows recordings: `inspect open` and `demo --open` at a terminal.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use acp_relay::recording::recordings;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::http::Caller;
use crate::support::link::{PATIENCE, run};
use crate::support::program::relay;
use crate::support::terminal::Terminal;

const RECORDING: &str = "tests/vectors/recordings/v1.000.acpr";

/// The program in an environment whose `xdg-open` writes its arguments to `opened` in `folder`.
fn with_browser(args: &[&str], folder: &Path) -> Command {
    let program = folder.join("xdg-open");
    let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$0.part\" && mv \"$0.part\" \"$0.args\"\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = relay(args);
    command
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("DISPLAY", ":0")
        .env_remove("BROWSER");
    command
}

/// What the browser was started with.
fn opened(folder: &Path) -> String {
    let begun = Instant::now();
    loop {
        if let Ok(text) = fs::read_to_string(folder.join("xdg-open.args")) {
            return text;
        }
        assert!(begun.elapsed() < PATIENCE, "no browser was started");
        thread::sleep(Duration::from_millis(10));
    }
}

fn interrupt(terminal: &Terminal) {
    let pid = Pid::from_raw(terminal.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}

/// The printed address of the viewer, as host and path.
fn address(terminal: &mut Terminal) -> (String, String) {
    terminal.expect("http://");
    let rest = terminal.expect("\n");
    let (host, path) = rest.trim_end().split_once('/').unwrap();
    (host.to_owned(), format!("/{path}"))
}

#[test]
fn the_demo_is_opened_in_a_browser_by_an_address_that_works_once() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let mut command = with_browser(&["demo", "--open"], folder.path());
    command.env("TMPDIR", &temporary);
    let mut terminal = Terminal::start(command);
    terminal.expect("stop reason: end_turn");
    terminal.expect("Next:  ");
    let (host, page) = address(&mut terminal);
    terminal.expect("Stop with Ctrl-C.");

    let given = opened(folder.path());
    let once = given.trim_end().strip_prefix(&format!("http://{host}"));
    let once = once.unwrap_or_else(|| panic!("{given}"));
    assert!(!given.contains(page.trim_matches('/')), "{given}");
    let caller = Caller::to(&host);
    let ask = |path: &str| run(caller.ask("GET", path, &[], b""));
    assert_eq!(ask(once).status, 303);
    assert_eq!(ask(once).status, 404);
    assert_eq!(ask(&page).status, 200);
    let all = ask(&format!("{page}api/recordings")).json();
    assert_eq!(all["rows"].as_array().map(Vec::len), Some(1), "{all}");

    interrupt(&terminal);
    let (printed, status) = terminal.end();
    assert!(status.success(), "{printed}");
    let left: Vec<_> = fs::read_dir(&temporary).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_demo_is_recorded_in_a_folder_of_ones_choice() {
    let folder = tempfile::tempdir().unwrap();
    let mut demo = relay(&["demo", "--record", "own recordings"]);
    let done = demo.current_dir(folder.path()).output().unwrap();
    let printed = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{printed}");
    let place = folder.path().join("own recordings");
    let how = format!("acp-relay inspect open '{}'", place.display());
    assert!(printed.contains(&how), "{printed}");
    let found = recordings(&place).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    let verified = relay(&[
        "inspect".as_ref(),
        "verify".as_ref(),
        found[0].segments[0].as_os_str(),
    ])
    .output()
    .unwrap();
    assert!(verified.status.success(), "{verified:?}");

    let done = relay(&["demo", "--record", "/dev/null/recordings"])
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(73), "{done:?}");
}

#[test]
fn a_browser_is_started_at_a_terminal_alone_and_unless_refused() {
    let missing = "No browser was started: `/no/browser`";
    for args in [
        &["inspect", "open", RECORDING][..],
        &["inspect", "open", "--no-browser", RECORDING],
    ] {
        let mut command = relay(args);
        command.env("BROWSER", "/no/browser --tab %s");
        let mut terminal = Terminal::start(command);
        terminal.expect("Stop with Ctrl-C.");
        interrupt(&terminal);
        let (printed, _) = terminal.end();
        assert_eq!(printed.contains(missing), args.len() == 3, "{printed}");
    }
}

#[test]
fn no_browser_is_started_without_a_display() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = with_browser(&["inspect", "open", RECORDING], folder.path());
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    let mut terminal = Terminal::start(command);
    let printed = terminal.expect("there is no display");
    assert!(printed.contains("No browser was started: "), "{printed}");
    interrupt(&terminal);
    terminal.end();
    assert!(!folder.path().join("xdg-open.args").exists());
}
