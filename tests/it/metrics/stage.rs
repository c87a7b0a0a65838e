//! A relay with an admin listener, an agent that uses most of the protocol, and a client.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use acp_relay::conversation::{Conversation, DialectOptions, LinkTraits, Outbox, TraceAssigner};
use acp_relay::jsonrpc::{Frame, Limits, Side};
use acp_relay::observe::{Event, Observer};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::support::http::{Caller, Reply, UPGRADE};
use crate::support::program;

/// Longest time that anything here may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Implements as much of ACP as the tests need.
pub(crate) const AGENT: &str = r#"
echo noise; echo oops >&2
send() { printf '%s\n' "$1"; }
update() { send '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":'"$1"'}}'; }
while IFS= read -r line; do case "$line" in
*'"initialize"'*) send '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
*'"session/new"'*) send '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s-1"}}';;
*'"session/prompt"'*)
  update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}'
  update '{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","kind":"edit","status":"pending"}'
  update '{"sessionUpdate":"usage_update","used":500,"size":1000}'
  send '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s-1","toolCall":{"toolCallId":"t"},"options":[{"optionId":"a","name":"A","kind":"allow_once"}]}}'
  IFS= read -r answer
  update '{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}'
  send '{"jsonrpc":"2.0","id":99,"result":{}}'
  send '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":20,"totalTokens":120}}}';;
*'"_mine"'*) send '{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no"}}';;
*'"die"'*) exit 3;;
esac; done
"#;

/// The answer to the agent's request for permission.
pub(crate) const ALLOW: &str =
    r#"{"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"selected","optionId":"a"}}}"#;

/// A running relay. Dropping it kills it.
pub(crate) struct Relay {
    child: Child,
    stderr: BufReader<ChildStderr>,
    pub(crate) folder: TempDir,
    /// The address of its admin listener, without `http://`.
    pub(crate) admin: String,
    /// The logged address of the viewer.
    pub(crate) recordings: Option<String>,
    /// The address for clients.
    pub(crate) address: String,
}

/// A client that sends and receives lines.
pub(crate) struct Client {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

/// Labels of a sample, and its value.
pub(crate) type Sample = (BTreeMap<String, String>, f64);

/// A parsed scrape.
#[derive(Debug, Default)]
pub(crate) struct Scrape {
    /// The types of the families.
    pub(crate) types: BTreeMap<String, String>,
    /// Samples by their names.
    pub(crate) samples: BTreeMap<String, Vec<Sample>>,
}

/// The runtime of HTTP clients and servers: these tests have none of their own.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

fn program(folder: &TempDir, args: &[&str]) -> Command {
    let mut command = program::relay(args);
    command.env_remove("ACP_RELAY_ADMIN");
    command.env("ACP_RELAY_STATE_DIR", folder.path());
    command
}

/// A conversation without links, observed.
pub(super) struct Observed<O> {
    core: Conversation,
    out: Outbox,
    pub(super) observer: O,
}

impl<O: Observer> Observed<O> {
    pub(super) fn new(observer: O, marker: Option<Box<dyn TraceAssigner>>) -> Self {
        let traits = LinkTraits {
            agent_is_child: true,
            ..LinkTraits::default()
        };
        let limits = Arc::new(Limits::default());
        let mut out = Outbox::new(&limits);
        out.set_needs(observer.needs());
        let core = Conversation::new(limits, traits, DialectOptions::canonical(), Instant::now());
        Self {
            core: core.with_marker(marker),
            out,
            observer,
        }
    }

    /// What the other side receives.
    pub(super) fn send(&mut self, from: Side, text: &str, now: Instant) -> Vec<String> {
        let frame = Frame::from(text.to_owned());
        self.core.handle_frame(from, frame, now, &mut self.out);
        self.observe(from.other())
    }

    /// Nothing more comes until then. What that side receives.
    pub(super) fn wait(&mut self, side: Side, until: Instant) -> Vec<String> {
        while self.core.poll_timeout().is_some_and(|at| at <= until) {
            self.core.handle_timeout(until, &mut self.out);
        }
        self.observe(side)
    }

    fn observe(&mut self, to: Side) -> Vec<String> {
        while let Some(summary) = self.out.pop_summary() {
            self.observer.on_event(&Event::Forwarded(&summary));
        }
        while let Some(note) = self.out.pop_note() {
            self.observer.on_event(&Event::Note(&note));
        }
        let mut received = Vec::new();
        while let Some(frame) = self.out.pop(to) {
            received.push(String::from_utf8_lossy(frame.as_bytes()).into_owned());
        }
        let silent = self.core.silent_requests();
        self.observer.on_event(&Event::Silent(silent));
        self.observer.flush();
        received
    }
}

fn serving<'a>(options: &[&'a str], agent: &'a str) -> Vec<&'a str> {
    let mut args = vec!["serve", "--agent-dialect", "canonical"];
    args.extend(["--client-dialect", "canonical", "--admin", "127.0.0.1:0"]);
    args.extend(options);
    if !options.contains(&"--config") {
        args.extend(["--", "sh", "-c", agent]);
    }
    args
}

impl Relay {
    /// Serves the agent on TCP, with these further options.
    pub(crate) fn start(options: &[&str]) -> Self {
        let listen = ["--listen", "tcp://127.0.0.1:0"];
        let folder = TempDir::new().unwrap();
        Self::serve(folder, &[&listen, options].concat(), &[])
    }

    /// Serves the agent with these options and variables.
    pub(crate) fn serve(folder: TempDir, options: &[&str], vars: &[(&str, &str)]) -> Self {
        let args = serving(options, AGENT);
        let mut command = program(&folder, &args);
        command.envs(vars.iter().copied());
        Self::of(folder, command)
    }

    /// Serves another agent on TCP, a script, under a shell that runs `shell` first.
    pub(crate) fn under(shell: &str, options: &[&str], agent: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let options = [&["--listen", "tcp://127.0.0.1:0"], options].concat();
        let relay = program(&folder, &serving(&options, agent));
        let mut command = Command::new("sh");
        let script = format!("{shell}\nexec \"$@\"");
        command.args(["-c", &script, "sh"]).arg(relay.get_program());
        command.args(relay.get_args());
        // The environment that the relay would have had.
        for (name, value) in relay.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Self::of(folder, command)
    }

    fn of(folder: TempDir, mut command: Command) -> Self {
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        command.stdout(Stdio::piped()).current_dir(folder.path());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut relay = Self {
            child,
            stderr,
            folder,
            admin: String::new(),
            recordings: None,
            address: String::new(),
        };
        while relay.address.is_empty() {
            let mut line = String::new();
            assert!(
                relay.stderr.read_line(&mut line).unwrap() > 0,
                "it has ended"
            );
            let line = line.trim();
            if let Some(at) = line.strip_prefix("acp-relay: admin at http://") {
                at.clone_into(&mut relay.admin);
            } else if let Some(at) = line.strip_prefix("acp-relay: recordings at ") {
                relay.recordings = Some(at.to_owned());
            } else if let Some(at) = line.strip_prefix("acp-relay: listening on ") {
                let (_, at) = at.split_once("://").unwrap();
                at.trim_end_matches("/acp").clone_into(&mut relay.address);
            } else {
                panic!("{line}");
            }
        }
        relay
    }

    pub(crate) fn client(&self) -> Client {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        Client { stream, reader }
    }

    /// Requests a WebSocket, with these further header lines.
    pub(crate) fn open(&self, fields: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!("GET /acp HTTP/1.1\r\nHost: {}\r\n", self.address);
        write!(stream, "{head}{UPGRADE}{fields}\r\n").unwrap();
        stream
    }

    /// The header line of a token that a command with this state directory prints.
    pub(crate) fn bearer(folder: &TempDir, words: &[&str]) -> String {
        let mut command = program(folder, &[&["token"], words].concat());
        let token = command.output().unwrap().stdout;
        let token = String::from_utf8(token).unwrap();
        format!("Authorization: Bearer {}\r\n", token.trim())
    }

    /// Asks the admin listener.
    pub(crate) fn get(&self, path: &str) -> Reply {
        Self::ask_at(&self.admin, path, &[])
    }

    /// Posts a message where clients connect, with these further header lines.
    pub(crate) fn post(&self, fields: &str, body: &str) -> Reply {
        let fields = fields.lines().filter_map(|line| line.split_once(": "));
        let fields: Vec<_> = fields.collect();
        wait(Caller::to(&self.address).post(&fields, body))
    }

    /// Asks any listener.
    pub(crate) fn ask_at(at: &str, path: &str, fields: &[(&str, &str)]) -> Reply {
        wait(Caller::to(at).ask("GET", path, fields, ""))
    }

    pub(crate) fn scrape(&self) -> Scrape {
        Scrape::read(&self.get("/metrics").body)
    }

    /// Scrapes until a sample is there, for effects after an answer.
    pub(crate) fn scrape_until(&self, name: &str) -> Scrape {
        self.scrape_for(name, &[])
    }

    /// The same, for one with these labels that is not 0.
    pub(crate) fn scrape_for(&self, name: &str, labels: &[(&str, &str)]) -> Scrape {
        self.scrape_when(name, |scrape| {
            let is_there = scrape.samples.contains_key(name);
            is_there && (labels.is_empty() || scrape.value(name, labels) > 0.)
        })
    }

    /// Scrapes until `met` holds; `what` is the name in a failure.
    pub(crate) fn scrape_when(&self, what: &str, met: impl Fn(&Scrape) -> bool) -> Scrape {
        let start = Instant::now();
        loop {
            let scrape = self.scrape();
            if met(&scrape) {
                return scrape;
            }
            assert!(start.elapsed() < PATIENCE, "{what} does not appear");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Runs another command of the same user.
    pub(crate) fn command(&self, args: &[&str]) -> Output {
        program(&self.folder, args).output().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// The next line on its stderr.
    pub(crate) fn complaint(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    pub(crate) fn wait(&mut self) {
        self.exit();
    }

    /// How it ends.
    pub(crate) fn exit(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

/// Waits for an answer.
pub(super) fn wait<T>(answer: impl Future<Output = T>) -> T {
    let answer = RUNTIME.block_on(async { timeout(PATIENCE, answer).await });
    answer.expect("an answer")
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    pub(crate) fn send(&mut self, line: &str) {
        writeln!(self.stream, "{line}").unwrap();
    }

    pub(crate) fn receive(&mut self) -> String {
        self.receive_or_end().expect("no end")
    }

    /// The next line; `None` at the end, or when the connection is broken.
    pub(crate) fn receive_or_end(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line);
        read.is_ok_and(|bytes| bytes > 0).then_some(line)
    }

    /// Receives until a line contains `what`.
    pub(crate) fn receive_until(&mut self, what: &str) {
        while !self.receive().contains(what) {}
    }

    /// A turn with a tool, a permission, and every kind of error.
    pub(crate) fn live(&mut self) {
        self.begin();
        self.send(r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s-1","prompt":[{"type":"text","text":"hello"}]}}"#);
        self.receive_until("request_permission");
        self.send(ALLOW);
        self.receive_until("end_turn");
        self.send(r#"{"jsonrpc":"2.0","id":3,"method":"_mine"}"#);
        self.receive_until("-32601");
        self.send("[1]");
        self.receive_until("error");
        self.send(r#"{"jsonrpc":"2.0","id":5,"method":"#);
        self.receive_until("error");
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"x","params":{}{}}}"#,
            "[".repeat(5000),
            "]".repeat(5000)
        ));
        self.receive_until("error");
    }

    /// `initialize` and `session/new`.
    pub(crate) fn begin(&mut self) {
        self.send(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
        );
        self.receive_until("protocolVersion");
        self.send(r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#);
        self.receive_until("sessionId");
    }
}

impl Scrape {
    /// Checks series of the relay, one a line: `name{label=value,…} value`.
    #[track_caller]
    pub(crate) fn check(&self, expected: &str) {
        for line in expected.split_terminator('\n').map(str::trim) {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let labels = labels.trim_end_matches('}').split(',');
            let labels: Vec<_> = labels.filter_map(|label| label.split_once('=')).collect();
            let found = self.value(&format!("acp_relay_{name}"), &labels);
            assert_eq!(found, value.parse::<f64>().unwrap(), "{line}");
        }
    }

    pub(crate) fn read(text: &str) -> Self {
        let mut scrape = Self::default();
        for line in text.lines() {
            if let Some(family) = line.strip_prefix("# TYPE ") {
                let (name, kind) = family.split_once(' ').unwrap();
                let twice = scrape.types.insert(name.to_owned(), kind.to_owned());
                assert!(twice.is_none(), "{line} stands twice");
            } else if !line.is_empty() && !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
                let labels = labels.strip_suffix('}').unwrap();
                let labels = labels.split("\",").filter(|label| !label.is_empty());
                let labels = labels.map(|label| {
                    let (name, value) = label.split_once("=\"").unwrap();
                    (name.to_owned(), value.trim_end_matches('"').to_owned())
                });
                let sample = (labels.collect(), value.parse().unwrap());
                scrape
                    .samples
                    .entry(name.to_owned())
                    .or_default()
                    .push(sample);
            }
        }
        scrape
    }

    /// The families of the samples.
    pub(crate) fn families(&self) -> BTreeSet<String> {
        self.samples.keys().map(|name| self.family(name)).collect()
    }

    pub(crate) fn family(&self, sample: &str) -> String {
        let parts = ["_bucket", "_sum", "_count"];
        let histogram = parts.iter().filter_map(|part| sample.strip_suffix(part));
        let mut histogram = histogram.filter(|name| {
            self.types
                .get(*name)
                .is_some_and(|kind| kind == "histogram")
        });
        histogram.next().unwrap_or(sample).to_owned()
    }

    /// The sum of the samples with these labels.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let samples = self.samples.get(name).into_iter().flatten();
        let fits = |known: &BTreeMap<String, String>| {
            labels
                .iter()
                .all(|(name, value)| known.get(*name).is_some_and(|known| known == value))
        };
        samples
            .filter(|(known, _)| fits(known))
            .map(|(_, value)| value)
            .sum()
    }
}
