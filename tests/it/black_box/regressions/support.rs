//! Peers for the tests beside this file: a scripted agent, raw HTTP and WebSocket clients, and an
//! HTTP server with scripted answers.
//!
//! All of them write their bytes themselves, so that no library hides what the program sends.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::support::program::{Program, run_in};

pub(super) const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
pub(super) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#;
pub(super) const NEW_SESSION: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;
pub(super) const PROMPT: &str = r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}"#;

/// Answers `initialize` and `session/new` (session `s`; its process id is in `_meta`), and runs
/// `$PROMPT` when it reads a prompt.
pub(super) const AGENT: &str = r#"
send() { printf '%s\n' "$1"; }
update() { send '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}}}'; }
while IFS= read -r line; do case "$line" in
*'"initialize"'*) send '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}';;
*'"session/new"'*) send '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","_meta":{"pid":'$$'}}}';;
*'"session/load"'*) eval "$LOAD";;
*'"session/prompt"'*) eval "$PROMPT";;
esac; done
"#;

/// Starts `serve` with these options and the scripted agent, which runs `on_prompt` at a prompt.
pub(super) fn serve(state: &Path, options: &[&str], on_prompt: &str) -> Program {
    let on_prompt = format!("PROMPT={}", quoted(on_prompt));
    serve_script(state, options, &format!("{on_prompt}\n{AGENT}"))
}

/// The same with any shell script as the agent.
pub(super) fn serve_script(state: &Path, options: &[&str], script: &str) -> Program {
    let agent = ["--", "sh", "-c", script];
    Program::start_in(state, &[&["serve"], options, &agent].concat())
}

/// The header line with a new token of this name.
pub(super) async fn bearer(state: &Path, name: &str) -> String {
    let made = run_in(state, &["token", "new", name]).await;
    format!("Authorization: Bearer {}\r\n", made.stdout.trim())
}

/// A word of the shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// `HOST:PORT` of an endpoint.
pub(super) fn place(endpoint: &str) -> &str {
    let (_, rest) = endpoint.split_once("://").unwrap();
    rest.split('/').next().unwrap()
}

/// An answer over HTTP.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// In lower case.
    pub(super) head: String,
    pub(super) body: String,
}

impl Reply {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// An HTTP/1.1 client at one port; each request has a connection of its own.
#[derive(Clone, Debug)]
pub(super) struct Http {
    pub(super) host: String,
    /// Lines for the head of each request.
    pub(super) fields: String,
}

impl Http {
    pub(super) fn to(endpoint: &str) -> Self {
        Self {
            host: place(endpoint).to_owned(),
            fields: String::new(),
        }
    }

    /// Sends all of these bytes, and then reads until the server closes.
    pub(super) async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.host).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    }

    fn head(&self, verb: &str, path: &str, fields: &str) -> String {
        let Self { host, fields: own } = self;
        format!("{verb} {path} HTTP/1.1\r\nHost: {host}\r\n{own}{fields}")
    }

    pub(super) async fn ask(&self, verb: &str, path: &str, fields: &str, body: &str) -> Reply {
        let head = self.head(verb, path, fields);
        let length = body.len();
        let more = "Content-Type: application/json\r\nConnection: close\r\n";
        let text = self
            .raw(format!("{head}{more}Content-Length: {length}\r\n\r\n{body}").as_bytes())
            .await;
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Reply {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    pub(super) async fn post(&self, message: &str) -> Reply {
        self.ask("POST", "/acp", "", message).await
    }

    /// Opens a connection of ACP's Streamable HTTP.
    pub(super) async fn initialize(endpoint: &str) -> Self {
        let mut client = Self::to(endpoint);
        client.join().await;
        client
    }

    /// The same with the fields that are set already.
    pub(super) async fn join(&mut self) {
        let reply = self.post(INITIALIZE).await;
        let id = reply.field("acp-connection-id").expect(&reply.body);
        self.fields += &format!("Acp-Connection-Id: {id}\r\n");
    }

    /// Opens a stream of events, with these lines in its head besides.
    pub(super) async fn events(&self, fields: &str) -> Events {
        let head = self.head("GET", "/acp", fields);
        let mut stream = BufReader::new(TcpStream::connect(&self.host).await.unwrap());
        let request = format!("{head}Accept: text/event-stream\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut events = Events {
            stream,
            text: String::new(),
            ready: VecDeque::new(),
        };
        let head = read_head(&mut events.stream).await.unwrap();
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        events
    }
}

/// The head of a request or an answer, in lower case.
async fn read_head(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    Some(head.to_ascii_lowercase())
}

fn length_of(head: &str) -> usize {
    let length = head.split("content-length: ").nth(1);
    length.map_or(0, |rest| {
        rest.split("\r\n").next().unwrap().parse().unwrap()
    })
}

/// A stream of events, sent in chunks.
pub(super) struct Events {
    stream: BufReader<TcpStream>,
    text: String,
    ready: VecDeque<String>,
}

impl Events {
    /// The next event or comment that is not empty, as it was sent; `None` at the end.
    pub(super) async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = block.to_owned();
                self.text = rest.to_owned();
                return Some(block);
            }
            let mut size = String::new();
            if self.stream.read_line(&mut size).await.ok()? == 0 {
                return None;
            }
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).await.ok()?;
            if size == 0 {
                return None;
            }
            chunk.truncate(size);
            self.text += &String::from_utf8(chunk).unwrap().replace("\r\n", "\n");
        }
    }

    /// The next message; `None` at the end of the stream.
    pub(super) async fn message(&mut self) -> Option<String> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            let block = self.block().await?;
            let data = block.lines().filter_map(|line| line.strip_prefix("data:"));
            let data: Vec<&str> = data.map(str::trim_start).collect();
            if !data.is_empty() {
                self.ready.push_back(data.join("\n"));
            }
        }
    }

    /// Messages up to the first one that contains `what`.
    pub(super) async fn until(&mut self, what: &str) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let message = self.message().await.expect(what);
            let found = message.contains(what);
            all.push(message);
            if found {
                return all;
            }
        }
    }
}

/// A WebSocket client.
pub(super) struct WebSocket(BufReader<TcpStream>);

impl WebSocket {
    /// Opens one, with these lines in the head of the request.
    pub(super) async fn open(endpoint: &str, fields: &str) -> Self {
        let host = place(endpoint);
        let mut stream = BufReader::new(TcpStream::connect(host).await.unwrap());
        let head = format!(
            "GET /acp HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             {fields}\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let head = read_head(&mut stream).await.unwrap();
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        Self(stream)
    }

    /// Sends a whole frame, its mask all zeros.
    pub(super) async fn frame(&mut self, opcode: u8, payload: &[u8]) {
        let mut frame = vec![0x80 | opcode];
        match u16::try_from(payload.len()) {
            Ok(short @ ..126) => frame.push(0x80 | u8::try_from(short).unwrap()),
            Ok(long) => {
                frame.push(0x80 | 126);
                frame.extend(long.to_be_bytes());
            }
            Err(_) => {
                frame.push(0x80 | 127);
                frame.extend((payload.len() as u64).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(payload);
        self.0.write_all(&frame).await.unwrap();
    }

    pub(super) async fn send(&mut self, message: &str) {
        self.frame(1, message.as_bytes()).await;
    }

    /// Sends messages until the server takes no more of them.
    pub(super) async fn flood(&mut self) {
        let note = format!(
            r#"{{"jsonrpc":"2.0","method":"_n","params":["{}"]}}"#,
            "x".repeat(60_000)
        );
        let sending = async {
            loop {
                self.send(&note).await;
            }
        };
        let _ = timeout(Duration::from_secs(2), sending).await;
    }

    /// Sends notifications of 100 KiB in all.
    pub(super) async fn notify_100_kib(&mut self) {
        let words = "words ".repeat(170);
        for number in 0..100 {
            let note =
                format!(r#"{{"jsonrpc":"2.0","method":"_n","params":["{number} {words}"]}}"#);
            self.send(&note).await;
        }
    }

    /// The next frame: its opcode and payload; `None` when the connection is over.
    pub(super) async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let first = self.0.read_u8().await.ok()?;
        let length = match self.0.read_u8().await.ok()? {
            126 => u64::from(self.0.read_u16().await.ok()?),
            127 => self.0.read_u64().await.ok()?,
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut payload).await.ok()?;
        Some((first & 0x0f, payload))
    }

    /// The next message.
    pub(super) async fn message(&mut self) -> Value {
        loop {
            match self.next().await.expect("a message, not the end") {
                (1, text) => return serde_json::from_slice(&text).unwrap(),
                (9, ping) => self.frame(10, &ping).await,
                (10, _) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The first message that answers the request `id`.
    pub(super) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.message().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// `initialize` and `session/new`; the process id of the agent.
    pub(super) async fn begin(&mut self) -> u64 {
        self.send(INITIALIZE).await;
        self.answer(0).await;
        self.send(NEW_SESSION).await;
        self.answer(1).await["result"]["_meta"]["pid"]
            .as_u64()
            .unwrap()
    }

    /// The close code and reason; earlier frames are skipped.
    pub(super) async fn closed(&mut self) -> (u16, String) {
        loop {
            if let (8, payload) = self.next().await.expect("a close frame") {
                let reason = String::from_utf8(payload[2..].to_vec()).unwrap();
                return (u16::from_be_bytes([payload[0], payload[1]]), reason);
            }
        }
    }
}

/// A request that a server of `server_with` has received.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) verb: String,
    pub(super) body: String,
}

/// An HTTP server: it answers each request with the bytes that `answer` returns. The connection of
/// a GET stays open until the client closes it. Returns `HOST:PORT` and the requests so far.
pub(super) async fn server_with(
    answer: impl Fn(&Asked) -> String + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<Asked>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let answer = Arc::new(answer);
    let all = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (answer, all) = (Arc::clone(&answer), Arc::clone(&all));
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                while let Some(asked) = request(&mut stream).await {
                    all.lock().unwrap().push(asked.clone());
                    let bytes = answer(&asked);
                    if stream.write_all(bytes.as_bytes()).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    (host, asked)
}

/// Reads a request whose body has a length.
async fn request(stream: &mut BufReader<TcpStream>) -> Option<Asked> {
    let head = read_head(stream).await?;
    let mut body = vec![0; length_of(&head)];
    stream.read_exact(&mut body).await.ok()?;
    Some(Asked {
        verb: head.split(' ').next().unwrap().to_ascii_uppercase(),
        body: String::from_utf8(body).unwrap(),
    })
}

/// An answer with a body, or without one when it is empty.
pub(super) fn answered(status: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\n\r\n{body}")
}

pub(super) const JSON: &str = "Content-Type: application/json\r\n";
