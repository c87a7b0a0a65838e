//! The program as a user or a supervisor runs it: its messages, its exit codes, its signals.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use acp_relay::transport::Endpoint;
use rustix::process::{Pid, Signal, kill_process};

/// Longest time that anything here may take.
const DEADLINE: Duration = Duration::from_secs(30);

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":7,"method":"initialize"}"#;

/// The program, killed at the end of the test.
struct Program(Child);

impl Program {
    fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.0.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for its exit and returns its exit code.
    fn code(&mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            assert!(start.elapsed() < DEADLINE, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn stderr(&mut self) -> String {
        let mut text = String::new();
        let mut stderr = self.0.stderr.take().unwrap();
        stderr.read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command<S: AsRef<OsStr>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-relay"));
    command
        .args(args)
        .env_remove("ACP_RELAY_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs it to its end with `input` on stdin.
fn run(args: &[&str], input: &str) -> Output {
    let mut program = Program::start(&mut command(args));
    let mut stdin = program.0.stdin.take().unwrap();
    // It may have exited already.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let code = program.code();
    assert!(code.is_some(), "{args:?} was killed by a signal");
    let mut stdout = Vec::new();
    let mut stderr = Vec::new();
    let (mut out, mut err) = (program.0.stdout.take(), program.0.stderr.take());
    out.as_mut().unwrap().read_to_end(&mut stdout).unwrap();
    err.as_mut().unwrap().read_to_end(&mut stderr).unwrap();
    let status = program.0.wait().unwrap();
    Output {
        status,
        stdout,
        stderr,
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Connects to a socket file as soon as it has a listener.
fn dial(path: &Path) -> UnixStream {
    let start = Instant::now();
    loop {
        if let Ok(stream) = UnixStream::connect(path) {
            stream.set_read_timeout(Some(DEADLINE)).unwrap();
            return stream;
        }
        assert!(start.elapsed() < DEADLINE, "no listener");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send(stream: &mut UnixStream, line: &str) {
    writeln!(stream, "{line}").unwrap();
}

/// The next line; empty at the end.
fn receive(stream: &UnixStream) -> String {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

#[test]
fn invalid_arguments_are_refused_with_a_reason() {
    let cases: &[(&[&str], i32, &str)] = &[
        (&["serve"], 64, "acp-relay serve -- COMMAND"),
        (&["serve"], 64, "serve --agent ENDPOINT"),
        (&["serve", "--"], 64, "acp-relay serve -- COMMAND"),
        (&["serve", "cat"], 64, "goes after `--`"),
        (&["connect"], 64, "acp-relay connect -- COMMAND"),
        (&["connect", "--"], 64, "connect ENDPOINT"),
        (&["connect", "cat"], 64, "it goes after `--`: -- cat"),
        (&["connect", "cat", "-u"], 64, ""),
        (&["connect", "stdio:"], 64, "belong to the client"),
        (&["serve", "--agent", "stdio:"], 64, "belong to the client"),
        (&["serve", "--agent", "tcp://h:0"], 64, "port 0"),
        (&["connect", "ws://h:0"], 64, "port 0"),
        (&["serve", "--listen", "exec:cat", "--", "cat"], 64, "agent"),
        (&["serve", "--tls-cert", "x", "--", "cat"], 64, "wss://"),
        (&["serve", "--tls-key", "x", "--", "cat"], 64, "wss://"),
        (
            &["serve", "--listen", "wss://127.0.0.1:0", "--", "cat"],
            64,
            "--tls-cert and --tls-key",
        ),
        (&["connect", "--tls-ca", "x", "--", "cat"], 64, "wss://"),
        (
            &["connect", "--header", "a: b", "tcp://127.0.0.1:1"],
            64,
            "--header is for agents behind HTTP",
        ),
        (
            &["connect", "--header", "host: b", "http://127.0.0.1:1"],
            64,
            "set by the transport",
        ),
        (
            &["connect", "--bearer-file", "/no/such", "https://h"],
            64,
            "/no/such cannot be read",
        ),
        (
            &["connect", "--pin-sha256", "12", "https://h"],
            64,
            "64 hexadecimal digits",
        ),
        (
            &["connect", "--http2-prior-knowledge", "https://h"],
            64,
            "HTTP in clear",
        ),
        (&["connect", "http://127.0.0.1:1"], 69, "nothing listens"),
        (
            &["connect", "elephant+http://127.0.0.1:1"],
            69,
            "nothing listens",
        ),
        (
            &["connect", "--limit", "conections=1", "--", "cat"],
            64,
            "no limit",
        ),
        (
            &[
                "serve",
                "--listen",
                "stdio:",
                "--agent",
                "tcp://127.0.0.1:1",
            ],
            69,
            "nothing listens there",
        ),
        (&["connect", "tcp://127.0.0.1:1"], 69, "nothing listens"),
        (&["connect", "--", "no-such-agent"], 69, "not an executable"),
    ];
    for (args, code, reports) in cases {
        let output = run(args, "");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {stderr}");
        assert!(
            stderr.contains(reports),
            "{args:?}: {reports:?} not in: {stderr}"
        );
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn help_lists_every_endpoint_and_the_manual_agrees() {
    let help = run(&["--help"], "").stdout;
    let reference = include_str!("../../src/docs/reference.md");
    for (form, about) in Endpoint::FORMS {
        assert!(text(&help).contains(form) && text(&help).contains(about));
        assert!(
            reference.contains(form),
            "{form} is missing in reference.md"
        );
    }
    for limit in ["connections=1024", "stop-grace=5s", "header-fields=64"] {
        assert!(text(&help).contains(limit), "{limit}");
    }
}

#[test]
fn an_editor_receives_the_reason_why_there_is_no_agent() {
    for words in [
        &["connect", "tcp://127.0.0.1:1"][..],
        &["connect", "--", "no-such-agent"],
        &[
            "serve",
            "--listen",
            "stdio:",
            "--agent",
            "tcp://127.0.0.1:1",
        ],
    ] {
        let output = run(words, &format!("{INITIALIZE}\n"));
        let answer = text(&output.stdout);
        assert!(
            answer.contains(r#""id":7,"error":{"code":-32050"#),
            "{answer}"
        );
        assert_eq!(answer.lines().count(), 1, "{answer}");
        assert_eq!(output.status.code(), Some(69));
    }
}

#[test]
fn an_editor_that_sends_nothing_does_not_delay_the_exit_for_long() {
    let mut program = Program::start(&mut command(&["connect", "tcp://127.0.0.1:1"]));
    // Its stdin stays open.
    assert_eq!(program.code(), Some(69));
    assert!(program.stderr().contains("nothing listens there"));
}

#[test]
fn a_failed_agent_is_logged_at_the_default_level() {
    let script = "echo first >&2; echo boom >&2; exit 3";
    let output = run(&["connect", "--", "sh", "-c", script], "");
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr.contains("exit code 3"), "{stderr}");
    assert!(stderr.contains("first / boom"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");

    let output = run(
        &[
            "connect",
            "--",
            "sh",
            "-c",
            "cat > /dev/null; echo fine >&2",
        ],
        "",
    );
    assert_eq!(text(&output.stderr), "", "a clean exit is not logged");
}

#[test]
fn an_agent_that_the_relay_stops_is_not_logged_as_failed() {
    let words = [
        "connect",
        "--limit",
        "stop-grace=500ms",
        "--",
        "sleep",
        "600",
    ];
    let output = run(&words, "");
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + 15), "{stderr}");
    assert!(!stderr.contains("ended with"), "{stderr}");
}

/// A port that accepts connections and sends nothing.
fn silent_port() -> (std::net::TcpListener, String) {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("ws://{}", silent.local_addr().unwrap());
    (silent, address)
}

#[test]
fn connecting_can_be_interrupted() {
    let (silent, address) = silent_port();
    let words = ["connect", "--limit", "handshake=600", &address];
    let mut program = Program::start(&mut command(&words));
    writeln!(program.0.stdin.as_mut().unwrap(), "{INITIALIZE}").unwrap();
    let _peer = silent.accept().unwrap();
    program.signal(Signal::TERM);
    assert_eq!(program.code(), Some(75));
    let stderr = program.stderr();
    assert_eq!(stderr, "acp-relay: stopped before the agent was reached\n");
    let mut answer = String::new();
    let stdout = program.0.stdout.as_mut().unwrap();
    stdout.read_to_string(&mut answer).unwrap();
    assert!(
        answer.contains(r#""id":7,"error":{"code":-32054"#),
        "{answer}"
    );
}

#[test]
fn a_server_that_is_connecting_can_be_interrupted() {
    let (silent, address) = silent_port();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let listen = format!("unix:{}", socket.display());
    let words = [
        "serve",
        "--limit",
        "handshake=600",
        "--listen",
        &listen,
        "--agent",
        &address,
    ];
    let mut program = Program::start(&mut command(&words));
    let mut client = dial(&socket);
    send(&mut client, INITIALIZE);
    let _peer = silent.accept().unwrap();
    program.signal(Signal::TERM);
    assert!(receive(&client).contains(r#""id":7,"error":{"code":-32054"#));
    drop(client);
    assert_eq!(program.code(), Some(0));
}

#[test]
fn the_second_signal_ends_the_wait_and_sets_the_exit_code() {
    let words = [
        "--log",
        "info",
        "connect",
        "--",
        "sh",
        "-c",
        "trap '' TERM; echo {}; exec tail -f /dev/null",
    ];
    let mut program = Program::start(&mut command(&words));
    let mut log = BufReader::new(program.0.stderr.take().unwrap());
    let mut until = |word: &str| {
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            assert_ne!(
                log.read_line(&mut line).unwrap(),
                0,
                "never logged {word:?}"
            );
        }
    };
    until("connected");
    program.signal(Signal::TERM);
    until("once more");
    program.signal(Signal::TERM);
    assert_eq!(program.code(), Some(75));
}

#[test]
fn an_ignored_hangup_stays_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let script = format!(
        "trap '' HUP; exec '{}' serve --listen 'unix:{}' -- cat",
        env!("CARGO_BIN_EXE_acp-relay"),
        socket.display()
    );
    let mut program = Program::start(
        Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::null())
            .stderr(Stdio::null()),
    );
    let before = dial(&socket);
    program.signal(Signal::HUP);
    drop(before);
    let mut client = dial(&socket);
    let line = r#"{"jsonrpc":"2.0","method":"hello"}"#;
    send(&mut client, line);
    assert_eq!(receive(&client), line);
    program.signal(Signal::TERM);
    assert_eq!(program.code(), Some(0), "the hangup was counted");
}

#[test]
fn an_unread_stderr_delays_no_message() {
    // 100 lines of 8 KiB are more than the pipe and the queue hold together.
    let script = "i=0; line=$(head -c 8000 /dev/zero | tr '\\0' x); \
        while [ $i -lt 99 ]; do echo $line >&2; i=$((i+1)); done; exec cat";
    let words = ["--log", "info", "connect", "--", "sh", "-c", script];
    let mut program = Program::start(&mut command(&words));
    let mut stdin = program.0.stdin.take().unwrap();
    let line = r#"{"jsonrpc":"2.0","method":"hello"}"#;
    writeln!(stdin, "{line}").unwrap();
    let mut answer = String::new();
    let mut stdout = BufReader::new(program.0.stdout.take().unwrap());
    stdout.read_line(&mut answer).unwrap();
    assert_eq!(answer.trim_end(), line);
    let stderr = program.stderr_later();
    drop(stdin);
    let reported = stderr.join().unwrap();
    assert_eq!(program.code(), Some(0));
    assert_eq!(
        reported.matches("more lines were lost").count(),
        1,
        "{reported}"
    );
}

#[test]
fn an_unread_stderr_does_not_delay_the_exit() {
    let script = "head -c 800000 /dev/zero | tr '\\0' x | fold -w 8000 >&2; exit 3";
    let words = ["--log", "info", "connect", "--", "sh", "-c", script];
    let mut program = Program::start(&mut command(&words));
    assert_eq!(program.code(), Some(3));
}

#[test]
fn a_closed_stderr_does_not_end_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let listen = format!("unix:{}", socket.display());
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let words = ["--log", "info", "serve", "--listen", &listen, "--", "cat"];
    let mut program = Program::start(command(&words).stderr(writer));
    let mut client = dial(&socket);
    let line = r#"{"jsonrpc":"2.0","method":"hello"}"#;
    send(&mut client, line);
    assert_eq!(receive(&client), line);
    program.signal(Signal::TERM);
    assert_eq!(program.code(), Some(0));
}

#[test]
fn rejected_clients_are_logged_at_a_bounded_rate() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let listen = format!("unix:{}", socket.display());
    let words = [
        "serve",
        "--limit",
        "connections=1",
        "--listen",
        &listen,
        "--",
        "cat",
    ];
    let mut program = Program::start(&mut command(&words));
    let mut connected = dial(&socket);
    let line = r#"{"jsonrpc":"2.0","method":"hello"}"#;
    send(&mut connected, line);
    assert_eq!(receive(&connected), line);

    let mut second = dial(&socket);
    send(&mut second, INITIALIZE);
    let answer = receive(&second);
    assert!(
        answer.contains(r#""id":7,"error":{"code":-32053"#),
        "{answer}"
    );
    assert!(answer.contains("1 clients are connected"), "{answer}");
    drop(second);

    // Silent clients hold a connection for a while; one beyond the limit is closed at once.
    let silent: Vec<UnixStream> = (0..65).map(|_| dial(&socket)).collect();
    let mut ends: Vec<_> = (silent.iter())
        .map(|stream| rustix::event::PollFd::new(stream, rustix::event::PollFlags::IN))
        .collect();
    let wait = rustix::event::Timespec {
        tv_sec: 4,
        tv_nsec: 0,
    };
    assert_ne!(
        rustix::event::poll(&mut ends, Some(&wait)).unwrap(),
        0,
        "all were kept"
    );
    send(&mut connected, line);
    assert_eq!(receive(&connected), line);
    drop(silent);
    drop(connected);
    program.signal(Signal::TERM);
    assert_eq!(program.code(), Some(0));
    let stderr = program.stderr();
    let reported = stderr.matches("are connected already").count();
    assert!((1..20).contains(&reported), "{stderr}");
}

#[test]
fn the_demo_leaves_nothing_when_it_is_interrupted() {
    for attempt in 0..100 {
        let folder = tempfile::tempdir().unwrap();
        let mut program = Program::start(command(&["demo"]).env("TMPDIR", folder.path()));
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        let start = Instant::now();
        while files() == 0 {
            assert!(start.elapsed() < DEADLINE);
            std::thread::sleep(Duration::from_millis(1));
        }
        program.signal(Signal::INT);
        let code = program.code();
        assert_eq!(files(), 0);
        if code == Some(75) {
            return;
        }
        assert_eq!(code, Some(0), "attempt {attempt}");
    }
    panic!("it was never interrupted in time");
}

impl Program {
    /// Reads stderr to its end, from now on.
    fn stderr_later(&mut self) -> std::thread::JoinHandle<String> {
        let mut stderr = self.0.stderr.take().unwrap();
        std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        })
    }
}
