//! Streamable HTTP between two relays: connections that are cut, requests that are repeated.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::support::http::INITIALIZE;
use crate::support::link::run;
use crate::support::program::{Program, words};

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
const NEW: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;
const PROMPT: &str = r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[],"_meta":{"lose":"prompt"}}}"#;
const CHOICE: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"cancelled"},"_meta":{"lose":"choice"}}}"#;
const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s","_meta":{"lose":"cancel"}}}"#;
const COUNT: &str = r#"{"jsonrpc":"2.0","id":3,"method":"_count"}"#;
const HTTP2: &str = "--http2-prior-knowledge";

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
async fn serve(options: &str, agent: &str) -> (Program, String) {
    let listen = "serve --listen http://127.0.0.1:0 --allow-host 127.0.0.1";
    let line = format!("{listen} {options} -- sh -c");
    let mut serve = Program::start(&[&words(&line)[..], &[agent]].concat());
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
        let (_serve, address) = serve("--limit http-keepalive=1", AGENT).await;
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
        let (_serve, address) = serve("", AGENT).await;
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
        let (mut serve, address) = serve("--limit http-grace=4", AGENT).await;
        let mut editor = Editor::start(&address, &["--no-link"]);
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
