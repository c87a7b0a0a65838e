//! Streamable HTTP and elephant.ai's routes: connections that are cut, requests that are repeated.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::support::program::{Program, run as run_program};

/// Asks for a permission in each turn, and counts the messages that it gets.
const AGENT: &str = r#"n=0
while read -r line; do
    n=$((n + 1))
    case $line in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
    *'"session/new"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}';;
    *'"session/prompt"'*) echo '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[]}}';;
    *'"id":7,"result"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}';;
    *'"_count"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"messages\":$n}}";;
    esac
done"#;
const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
const NEW: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;
const PROMPT: &str = r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[],"_meta":{"lose":"prompt"}}}"#;
const CHOICE: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"cancelled"},"_meta":{"lose":"choice"}}}"#;
const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s","_meta":{"lose":"cancel"}}}"#;
const COUNT: &str = r#"{"jsonrpc":"2.0","id":3,"method":"_count"}"#;
const HTTP2: &str = "--http2-prior-knowledge";

/// Runs a test in a runtime of its own, and fails when it hangs.
fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let limit = Duration::from_secs(100);
    runtime.block_on(async { timeout(limit, test).await.expect("the test hangs") })
}

/// What is lost when a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    /// The request; the server gets the head at most.
    Request,
    /// The server's answer to it.
    Answer,
    /// All that the server sends from then on; the connection stays open.
    Silence,
}

/// Forwards bytes between clients and one port.
#[derive(Default)]
struct Forwarder {
    made: AtomicUsize,
    /// Connections with a lower number are silent: their bytes are read and dropped.
    silent: AtomicUsize,
    /// Texts; the connection that carries one is cut, once.
    losses: Mutex<Vec<(&'static str, Loss)>>,
}

impl Forwarder {
    /// Starts one; returns the endpoint that stands for `address`.
    async fn start(address: &str) -> (Arc<Self>, String) {
        let forwarder = Arc::<Self>::default();
        let (host, path) = parts(address);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = listener.local_addr().unwrap();
        let (all, far) = (forwarder.clone(), host.to_owned());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let number = all.made.fetch_add(1, Ordering::SeqCst);
                let far = TcpStream::connect(&far).await.unwrap();
                let all = all.clone();
                tokio::spawn(async move { Box::pin(all.carry(number, near, far)).await });
            }
        });
        (forwarder, format!("http://{near}{path}"))
    }

    async fn carry(&self, number: usize, mut near: TcpStream, mut far: TcpStream) -> Option<()> {
        let (mut up, mut down) = ([0; 8192], [0; 8192]);
        let (mut losing, mut muted) = (false, false);
        loop {
            let silent = || number < self.silent.load(Ordering::SeqCst);
            tokio::select! {
                read = near.read(&mut up) => {
                    let read = read.ok().filter(|read| *read > 0)?;
                    match self.loss(&up[..read]) {
                        Some(Loss::Request) => return None,
                        Some(Loss::Answer) => losing = true,
                        Some(Loss::Silence) => muted = true,
                        None => {}
                    }
                    if !silent() {
                        far.write_all(&up[..read]).await.ok()?;
                    }
                }
                read = far.read(&mut down) => {
                    let read = read.ok().filter(|read| *read > 0 && !losing)?;
                    if !silent() && !muted {
                        near.write_all(&down[..read]).await.ok()?;
                    }
                }
            }
        }
    }

    fn loss(&self, bytes: &[u8]) -> Option<Loss> {
        let text = String::from_utf8_lossy(bytes);
        let mut losses = self.losses.lock();
        let at = losses.iter().position(|(lost, _)| text.contains(lost))?;
        Some(losses.remove(at).1)
    }

    /// All connections made so far go silent.
    fn mute(&self) {
        let made = self.made.load(Ordering::SeqCst);
        self.silent.store(made, Ordering::SeqCst);
    }
}

/// Host and path of an `http://` address.
fn parts(address: &str) -> (&str, &str) {
    let rest = address.strip_prefix("http://").unwrap();
    rest.split_at(rest.find('/').unwrap_or(rest.len()))
}

/// A `serve` with the agent, and its address.
async fn serve(options: &[&str], agent: &str) -> (Program, String) {
    let listen = [
        "serve",
        "--listen",
        "http://127.0.0.1:0",
        "--allow-host",
        "127.0.0.1",
    ];
    let mut serve = Program::start(&[&listen[..], options, &["--", "sh", "-c", agent]].concat());
    let address = serve.address().await;
    (serve, address)
}

/// An editor behind a `connect`.
struct Editor(Program);

impl Editor {
    fn start(address: &str, options: &[&str]) -> Self {
        Self(Program::start(&[&["connect", address], options].concat()))
    }

    async fn send(&mut self, message: &str) {
        self.0.write(&format!("{message}\n")).await;
    }

    async fn received(&mut self) -> Value {
        self.0.json().await
    }

    /// Sends a message and receives one with that id.
    async fn ask(&mut self, message: &str, id: u64) -> Value {
        self.send(message).await;
        let received = self.received().await;
        assert_eq!(received["id"], id, "{received}");
        assert_eq!(received.get("error"), None, "{received}");
        received
    }

    async fn begin(&mut self) {
        self.ask(INITIALIZE, 0).await;
        self.ask(NEW, 1).await;
    }

    /// A turn and a notification, each message of which the agent has to get once.
    async fn turn(&mut self) {
        self.ask(PROMPT, 7).await;
        self.ask(CHOICE, 2).await;
        self.send(CANCEL).await;
        let counted = self.ask(COUNT, 3).await;
        assert_eq!(counted["result"], json!({"messages": 6}));
    }
}

#[test]
fn a_connection_that_goes_silent_is_replaced_and_the_conversation_goes_on() {
    async fn over(options: &[&str]) {
        let (_serve, address) = serve(&["--limit", "http-keepalive=1"], AGENT).await;
        let (forwarder, near) = Forwarder::start(&address).await;
        // Over HTTP/1.1 the session's stream is requested, and the answer does not come.
        let lost = [("acp-session-id: s", Loss::Silence)];
        *forwarder.losses.lock() = lost.into_iter().filter(|_| options.is_empty()).collect();
        let mut editor = Editor::start(&near, options);
        editor.begin().await;
        while !forwarder.losses.lock().is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
        forwarder.mute();
        editor.turn().await;
    }
    run(async { tokio::join!(over(&[]), over(&[HTTP2])) });
}

#[test]
fn a_post_on_a_cut_connection_is_repeated_and_delivered_once() {
    async fn over(options: &[&str], loss: Loss) {
        let (_serve, address) = serve(&[], AGENT).await;
        let (forwarder, near) = Forwarder::start(&address).await;
        let lost = [r#""prompt"}"#, r#""choice"}"#, r#""cancel"}"#];
        *forwarder.losses.lock() = lost.map(|text| (text, loss)).to_vec();
        let mut editor = Editor::start(&near, options);
        editor.begin().await;
        editor.turn().await;
        assert_eq!(*forwarder.losses.lock(), [], "{options:?} {loss:?}");
    }
    run(async {
        tokio::join!(
            over(&[], Loss::Request),
            over(&[], Loss::Answer),
            over(&[HTTP2], Loss::Request),
            over(&[HTTP2], Loss::Answer),
        )
    });
}

#[test]
fn a_server_that_refuses_connections_is_given_up_after_a_warning_and_its_grace() {
    run(async {
        let (mut serve, address) = serve(&["--limit", "http-grace=4"], AGENT).await;
        let mut editor = Editor::start(&address, &[]);
        editor.begin().await;
        editor.ask(PROMPT, 7).await;
        serve.signal(Signal::KILL);
        serve.exit().await;
        let ended = async {
            let warning = editor.0.complaint().await.unwrap();
            assert!(warning.contains("waiting for the server"), "{warning}");
            assert!(warning.contains("4s where nothing listens"), "{warning}");
            let answer = editor.received().await;
            assert_eq!(
                (&answer["id"], &answer["error"]["code"]),
                (&json!(2), &json!(-32050))
            );
            assert_eq!(editor.0.exit().await.code(), Some(69));
        };
        timeout(Duration::from_secs(30), ended)
            .await
            .expect("it waits for longer");
    });
}

#[test]
fn keepalives_are_10_s_apart_by_default() {
    let help = run(run_program(&["--help"], ""));
    assert!(
        help.stdout.contains("http-keepalive=10s"),
        "{}",
        help.stdout
    );
}

/// A scripted HTTP server, whose answers a test writes; each request has its own connection.
struct Server {
    asked: mpsc::Receiver<(String, TcpStream)>,
    address: String,
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/acp", listener.local_addr().unwrap());
        let (notify, asked) = mpsc::channel(1024);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let notify = notify.clone();
                tokio::spawn(async move {
                    let text = request(&mut stream).await?;
                    notify.send((text, stream)).await.ok()
                });
            }
        });
        Self { asked, address }
    }

    /// The next request, which has to begin with `begin`.
    async fn next(&mut self, begin: &str) -> (String, TcpStream) {
        let (text, stream) = self.asked.recv().await.unwrap();
        assert!(text.starts_with(begin), "{begin}: {text}");
        (text, stream)
    }

    /// A `connect` whose `initialize` was answered, and its stream.
    async fn begun(&mut self, options: &[&str]) -> (Editor, TcpStream) {
        let mut editor = Editor::start(&self.address, options);
        editor.send(INITIALIZE).await;
        let (_, mut post) = self.next("POST").await;
        let body = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#;
        let head = "content-type: application/json\r\nacp-connection-id: c\r\nconnection: close";
        let answer = format!(
            "HTTP/1.1 200 OK\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        send(&mut post, &answer).await;
        assert_eq!(editor.received().await["id"], 0);
        let (_, mut stream) = self.next("GET").await;
        send(&mut stream, STREAM).await;
        send(&mut stream, ": hello\nid: e1\n\n").await;
        (editor, stream)
    }
}

/// Reads a request with its body.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let read = stream.read_buf(&mut text).await.ok()?;
        let text = std::str::from_utf8(&text).ok()?;
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head.split("content-length: ").nth(1);
            let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
            body.len() >= length.unwrap_or(0)
        });
        if whole {
            return Some(text.to_owned());
        }
        (read > 0).then_some(())?;
    }
}

async fn send(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

fn update(number: u32) -> String {
    let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"n": number}});
    format!("id: u{number}\ndata: {update}\n\n")
}

#[test]
fn a_stream_without_keepalive_comments_is_resumed_after_the_last_event() {
    run(async {
        let mut server = Server::start().await;
        let (mut editor, mut stream) = server.begun(&["--limit", "http-keepalive=1"]).await;
        for _ in 0..2 {
            sleep(Duration::from_millis(1500)).await;
            send(&mut stream, ":\n\n").await;
        }
        let (asked, mut again) = server.next("GET").await;
        assert!(asked.contains("last-event-id: e1"), "{asked}");
        send(&mut again, STREAM).await;
        send(&mut again, &update(1)).await;
        assert_eq!(editor.received().await["params"]["n"], 1);
        drop(stream);
    });
}

#[test]
fn a_stream_with_an_unknown_keepalive_interval_is_not_given_up() {
    run(async {
        let mut server = Server::start().await;
        let (mut editor, mut stream) = server.begun(&["--limit", "http-keepalive=0"]).await;
        // An opening event and one comment: the next may be due in 30 s.
        sleep(Duration::from_millis(1500)).await;
        send(&mut stream, ":\n\n").await;
        sleep(Duration::from_secs(13)).await;
        assert!(server.asked.try_recv().is_err(), "a second request");
        send(&mut stream, &update(1)).await;
        assert_eq!(editor.received().await["params"]["n"], 1);
    });
}

#[test]
fn a_request_is_not_repeated_to_a_server_that_may_not_deduplicate() {
    run(async {
        let mut server = Server::start().await;
        let (mut editor, mut stream) = server.begun(&[]).await;
        editor.send(COUNT).await;
        let (asked, cut) = server.next("POST").await;
        assert!(asked.contains("_count"), "{asked}");
        drop(cut);
        let answer = editor.received().await;
        assert_eq!(
            answer["error"]["data"]["relay"]["delivered"], "unknown",
            "{answer}"
        );
        editor.send(r#"{"jsonrpc":"2.0","method":"_note"}"#).await;
        let (asked, mut post) = server.next("POST").await;
        assert!(asked.contains("_note"), "{asked}");
        send(&mut post, ACCEPTED).await;
        send(&mut stream, &update(1)).await;
        assert_eq!(editor.received().await["params"]["n"], 1);
    });
}

/// A client of elephant.ai's routes.
struct Elephant {
    address: String,
    events: Lines<BufReader<TcpStream>>,
}

impl Elephant {
    async fn open(address: &str) -> Self {
        let events = Self::ask(address, "GET", "sse", "").await;
        Self {
            address: address.to_owned(),
            events: BufReader::new(events).lines(),
        }
    }

    async fn ask(address: &str, method: &str, route: &str, body: &str) -> TcpStream {
        let (host, path) = parts(address);
        let mut stream = TcpStream::connect(host).await.unwrap();
        let head = format!("{method} {path}/{route}?client_id=c HTTP/1.1\r\nhost: {host}");
        let length = format!(
            "content-type: application/json\r\ncontent-length: {}",
            body.len()
        );
        send(&mut stream, &format!("{head}\r\n{length}\r\n\r\n{body}")).await;
        stream
    }

    /// Posts a message: the status of the answer.
    async fn post(&self, body: &str) -> String {
        let stream = Self::ask(&self.address, "POST", "rpc", body).await;
        let head = BufReader::new(stream)
            .lines()
            .next_line()
            .await
            .unwrap()
            .unwrap();
        head.split(' ').nth(1).unwrap().to_owned()
    }

    /// The next message.
    async fn event(&mut self) -> Value {
        loop {
            let line = self.events.next_line().await.unwrap().expect("a message");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

/// Answers `_count` with the number of messages received, and `_wait` likewise after `_go`.
const COUNTING: &str = r#"n=0
answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"messages\":$n}}"; }
while read -r line; do
    n=$((n + 1))
    case $line in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
    *'"_count"'*|*'"_go"'*) answer;;
    esac
done"#;

#[test]
fn an_elephant_client_may_reuse_an_id_once_it_has_the_answer() {
    run(async {
        let (_serve, address) = serve(&[], COUNTING).await;
        let mut client = Elephant::open(&address).await;
        assert_eq!(client.post(INITIALIZE).await, "202");
        assert_eq!(client.event().await["id"], 0);
        let other = COUNT.replace("_count", "_count\",\"params\":{},\"x\":\"");
        for (body, count) in [(COUNT, 2), (&*other, 3), (&*other, 4), (COUNT, 5)] {
            assert_eq!(client.post(body).await, "202", "{body}");
            assert_eq!(client.event().await["result"]["messages"], count, "{body}");
        }
    });
}

#[test]
fn an_elephant_request_that_is_repeated_while_it_is_open_is_delivered_once() {
    run(async {
        let (_serve, address) = serve(&[], COUNTING).await;
        let mut client = Elephant::open(&address).await;
        assert_eq!(client.post(INITIALIZE).await, "202");
        assert_eq!(client.event().await["id"], 0);
        let wait = COUNT.replace("_count", "_wait");
        assert_eq!(client.post(&wait).await, "202");
        assert_eq!(client.post(&wait).await, "202");
        let other = COUNT.replace("_count", "_other");
        assert_eq!(
            client.post(&other).await,
            "409",
            "the id of an open request"
        );
        assert_eq!(
            client.post(r#"{"jsonrpc":"2.0","method":"_go"}"#).await,
            "202"
        );
        assert_eq!(client.event().await["result"]["messages"], 3);
    });
}
