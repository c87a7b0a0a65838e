//! Runs the scripts of `tests/vectors/http_client`: a link, and a server whose answers are written
//! there. tests/README.md explains their language.

use std::collections::HashMap;

use acp_relay::jsonrpc::framing::Decoded;
use acp_relay::transport::{CloseReason, Link, LinkError};
use futures_util::future::join_all;
use tokio::task::JoinHandle;

use crate::support::http::{INITIALIZE, INITIALIZED};
use crate::support::http_server::{Asked, Events, Server};
use crate::support::link::{close, next, run, send, setup};
use crate::transport::script::{Run, check, fields, runs_of};

struct Scene {
    server: Server,
    link: Option<Link>,
    closing: Option<JoinHandle<Link>>,
    streams: HashMap<String, Events>,
    /// Requests without an answer; the last one has an empty name.
    held: HashMap<String, Asked>,
}

#[test]
fn turns_and_faults_go_as_their_scripts_say() {
    let names = [("INITIALIZED", INITIALIZED), ("INITIALIZE", INITIALIZE)];
    for file in ["http_client/turns.txt", "http_client/faults.txt"] {
        run(join_all(runs_of(file, &names).into_iter().map(play)));
    }
}

async fn play(mut script: Run) {
    let mut server = Server::start().await;
    let mut streams = HashMap::new();
    let link = if script.case.ends_with(", not initialized") {
        server.link(&setup()).await
    } else {
        let (link, events) = server.begun(&setup()).await;
        streams.insert("events".to_owned(), events);
        link
    };
    let mut scene = Scene {
        server,
        link: Some(link),
        closing: None,
        streams,
        held: HashMap::new(),
    };
    for line in std::mem::take(&mut script.lines) {
        if let Some(line) = script.expand(&line) {
            let at = format!("{}: {line}", script.case);
            scene.step(&line, &at).await;
        }
    }
}

impl Scene {
    fn link(&mut self) -> &mut Link {
        self.link.as_mut().expect("it is open")
    }

    async fn step(&mut self, line: &str, at: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            ">" => send(&mut *self.link().tx, rest.to_owned()).await.expect(at),
            "<" => self.receive(rest, at).await,
            "quiet" => self.server.quiet().await,
            "close" => {
                let mut link = self.link.take().expect(at);
                self.closing = Some(tokio::spawn(async move {
                    close(&mut *link.tx, CloseReason::Done).await.unwrap();
                    link
                }));
            }
            "closed" => self.link = Some(self.closing.take().expect(at).await.expect(at)),
            "drop" => self.link = None,
            "GET" | "POST" | "DELETE" => {
                let asked = self.server.next().await;
                assert_eq!(asked.method.as_str(), word, "{at}: {asked:?}");
                let (head, body) = rest.split_once("| ").unwrap_or((rest, ""));
                for (name, value) in fields(head) {
                    assert_eq!(asked.header(name), Some(value), "{at}: {asked:?}");
                }
                for name in head
                    .split("; ")
                    .filter_map(|one| one.trim().strip_suffix(" -"))
                {
                    assert_eq!(asked.header(name), None, "{at}: {asked:?}");
                }
                assert!(body.is_empty() || asked.body == body, "{at}: {asked:?}");
                self.held.insert(String::new(), asked);
            }
            "=" => self.answer("", rest, at),
            _ => self.other(word, rest, at).await,
        }
    }

    /// What is done with a stream or a held request.
    async fn other(&mut self, name: &str, what: &str, at: &str) {
        if let Some(answer) = what.strip_prefix("= ") {
            return self.answer(name, answer, at);
        }
        if let Some(stream) = name.strip_suffix(':') {
            return self.streams[stream].send(what).await;
        }
        if let Some(text) = what.strip_prefix("raw ") {
            return self.streams[name].piece(text.replace("\\n", "\n")).await;
        }
        let stream = self.streams.remove(name).expect(at);
        match what {
            "breaks" => stream.break_off().await,
            "ends" => drop(stream),
            "unread" => stream.unread().await,
            _ => panic!("{at}"),
        }
    }

    fn answer(&mut self, name: &str, how: &str, at: &str) {
        let asked = self.held.remove(name).expect(at);
        match how.split_once(' ').unwrap_or((how, "")) {
            ("hang", "up") => asked.hang_up(),
            ("hold", name) => drop(self.held.insert(name.to_owned(), asked)),
            ("stream", name) => drop(self.streams.insert(name.to_owned(), asked.stream())),
            (status, rest) => {
                let (head, body) = rest.split_once("| ").unwrap_or((rest, ""));
                let body = body.replace("\\n", "\n");
                asked.answer(status.parse().expect(at), &fields(head), body);
            }
        }
    }

    /// The next item of the link, or its end.
    async fn receive(&mut self, expected: &str, at: &str) {
        let item = next(&mut *self.link().rx).await;
        if expected == "end" {
            assert!(item.is_none(), "{at}: {item:?}");
        } else if let Some(fault) = expected.strip_prefix("fault ") {
            let (kind, words) = fault.split_once(": ").expect(at);
            let fault = item.expect(at).expect_err(at);
            assert_eq!(kind_of(&fault), kind, "{at}: {fault}");
            assert!(fault.to_string().contains(words), "{at}: {fault}");
            assert!(next(&mut *self.link().rx).await.is_none(), "{at}");
        } else if let Some(Ok(Decoded::Frame(frame))) = item {
            check(&frame, expected, at);
        } else {
            panic!("{at}: {item:?}");
        }
    }
}

const fn kind_of(fault: &LinkError) -> &'static str {
    match fault {
        LinkError::Io { .. } => "Io",
        LinkError::Refused(_) => "Refused",
        LinkError::Forbidden(_) => "Forbidden",
        LinkError::Unavailable(_) => "Unavailable",
        _ => "other",
    }
}
