//! What a person at a terminal sees that programs on pipes do not.

use rustix::process::{Pid, Signal, kill_process};

use crate::support::agent::scripted;
use crate::support::program::{relay, run_on};
use crate::support::terminal::Terminal;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;

fn interrupt(terminal: &Terminal) {
    let pid = Pid::from_raw(terminal.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}

fn serve(listen: &str) -> Vec<String> {
    let args = ["serve", "--listen", listen, "--"].map(str::to_owned);
    args.into_iter().chain(scripted(&[])).collect()
}

#[test]
fn serve_says_how_it_is_reached_and_who_comes_and_goes() {
    let mut terminal = Terminal::start(relay(&serve("ws://127.0.0.1:0")));
    terminal.expect("listening on ");
    let address = terminal.expect("\n").trim().to_owned();
    for command in ["install zed", "connect", "try"] {
        terminal.expect(&format!("acp-relay {command} {address}\n"));
    }
    let output = run_on(&["connect", &address], format!("{INITIALIZE}\n").as_bytes());
    assert!(output.status.success(), "{output:?}");
    terminal.expect("connected to default");
    terminal.expect("left after");
    interrupt(&terminal);
    let (printed, status) = terminal.end();
    assert!(status.success(), "{printed}");
}

#[test]
fn connect_says_that_it_waits_for_an_editor() {
    let words = scripted(&[]);
    let args = ["connect", "--"].map(str::to_owned);
    let args: Vec<String> = args.into_iter().chain(words).collect();
    let mut terminal = Terminal::start(relay(&args));
    terminal.expect("waiting for an editor's messages");
    terminal.enter(INITIALIZE);
    terminal.expect(r#""protocolVersion": 1"#);
    interrupt(&terminal);
    terminal.end();
    // On a pipe it is silent.
    let output = run_on(&args, format!("{INITIALIZE}\n").as_bytes());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
