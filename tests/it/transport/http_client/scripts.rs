//! Runs the scripts of `tests/vectors/http_client`: a link, and a server whose answers are written
//! there. tests/README.md explains their language.

use std::collections::HashMap;

use acp_relay::jsonrpc::Frame;
use acp_relay::jsonrpc::framing::Decoded;
use acp_relay::transport::{CloseReason, Link, LinkError};
use futures_util::future::join_all;
use serde_json::Value;
use tokio::task::JoinHandle;

use super::server::{Asked, Events, INITIALIZE, INITIALIZED, Server};
use crate::support::link::{close, next, run, send, setup};

/// Names and what they stand for.
type Names = Vec<(String, String)>;

/// One case: its lines, run once for each `with`.
struct Case<'a> {
    name: &'a str,
    lines: Vec<&'a str>,
}

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
    for file in ["turns", "faults"] {
        let path = format!(
            "{}/tests/vectors/http_client/{file}.txt",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = std::fs::read_to_string(path).unwrap();
        let (names, cases) = parse(&text);
        assert!(cases.len() > 5, "{file}");
        run(join_all(
            cases.iter().flat_map(|case| runs_of(case, &names)),
        ));
    }
}

fn parse(text: &str) -> (Names, Vec<Case<'_>>) {
    let mut names = vec![
        ("INITIALIZED".to_owned(), INITIALIZED.to_owned()),
        ("INITIALIZE".to_owned(), INITIALIZE.to_owned()),
    ];
    let mut cases: Vec<Case<'_>> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix("== ") {
            let lines = Vec::new();
            cases.push(Case { name, lines });
        } else if let Some(case) = cases.last_mut() {
            case.lines.push(line);
        } else if let Some(definition) = line.strip_prefix("let ") {
            define(&mut names, definition, ' ');
        }
    }
    (names, cases)
}

fn define(names: &mut Names, definition: &str, between: char) {
    let (name, value) = definition.split_once(between).expect(definition);
    let value = expand(value, names);
    names.insert(0, (name.to_owned(), value));
}

fn expand(text: &str, names: &Names) -> String {
    names.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("${name}"), value)
    })
}

/// The runs of a case.
fn runs_of<'a>(case: &'a Case<'a>, names: &Names) -> Vec<impl Future<Output = ()> + use<'a>> {
    let with: Vec<&str> = case
        .lines
        .iter()
        .filter_map(|line| line.strip_prefix("with "))
        .collect();
    let with = if with.is_empty() { vec![""] } else { with };
    let runs = with.into_iter().map(|with| {
        let mut names = names.clone();
        for definition in with.split(" | ").filter(|one| !one.is_empty()) {
            define(&mut names, definition, '=');
        }
        play(case, names)
    });
    runs.collect()
}

async fn play(case: &Case<'_>, mut names: Names) {
    let mut server = Server::start().await;
    let mut streams = HashMap::new();
    let link = if case.name.ends_with(", not initialized") {
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
    for line in &case.lines {
        if let Some(definition) = line.strip_prefix("let ") {
            define(&mut names, definition, ' ');
        } else if !line.starts_with('#') && !line.starts_with("with ") {
            let line = expand(line, &names);
            let at = format!("{}: {line}", case.name);
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
                let (fields, body) = rest.split_once("| ").unwrap_or((rest, ""));
                for field in fields
                    .split("; ")
                    .map(str::trim)
                    .filter(|one| !one.is_empty())
                {
                    let (name, value) = match field.strip_suffix(" -") {
                        Some(name) => (name, None),
                        None => field
                            .split_once(": ")
                            .map(|(name, value)| (name, Some(value)))
                            .expect(at),
                    };
                    assert_eq!(asked.header(name), value, "{at}: {asked:?}");
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
                let (fields, body) = rest.split_once("| ").unwrap_or((rest, ""));
                let fields = fields
                    .split("; ")
                    .filter_map(|field| field.trim().split_once(": "));
                let fields: Vec<_> = fields.collect();
                asked.answer(
                    status.parse().expect(at),
                    &fields,
                    body.replace("\\n", "\n"),
                );
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
            match expected.strip_prefix('~') {
                None => assert_eq!(frame, Frame::from(expected.to_owned()), "{at}"),
                Some(members) => {
                    let members: Value = serde_json::from_str(members).expect(at);
                    let found: Value = serde_json::from_slice(frame.as_bytes()).expect(at);
                    assert!(holds(&found, &members), "{at}: {found}");
                }
            }
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

/// Whether a value has at least these members; a text after `~` is a part of the other.
fn holds(found: &Value, members: &Value) -> bool {
    match (found, members) {
        (Value::Object(found), Value::Object(members)) => members
            .iter()
            .all(|(name, member)| found.get(name).is_some_and(|one| holds(one, member))),
        (Value::String(found), Value::String(part)) if part.starts_with('~') => {
            found.contains(&part[1..])
        }
        _ => found == members,
    }
}
