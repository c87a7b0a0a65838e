//! Which stream a message comes on, what waits there, and what a client that reconnects is sent.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::collections::HashMap;
use std::time::Duration;

use acp_relay::jsonrpc::{Frame, Limits};
use acp_relay::transport::Link;
use futures_util::future::join_all;
use tokio::time::timeout;

use super::site::{Open, Site};
use crate::support::http::{Caller, Events, How};
use crate::support::link::{ready, received, run, send};
use crate::transport::script::{Run, fields, runs_of};

const EVENTS: (&str, &str) = ("accept", "text/event-stream");

/// An open connection: its client, and the relay's link.
struct Connection {
    caller: Caller,
    id: String,
    link: Link,
    _site: Site,
}

impl Connection {
    async fn new(limits: Limits) -> Self {
        let mut site = Site::open(How::H1, limits).await;
        let Open { id, link } = site.initialize().await;
        Self {
            caller: site.caller.clone(),
            id,
            link,
            _site: site,
        }
    }

    fn name(&self) -> (&'static str, &str) {
        ("acp-connection-id", &self.id)
    }

    async fn events(&self, session: Option<&str>) -> Events {
        match session {
            None => self.caller.events(&[self.name()]).await,
            Some(session) => {
                let session = ("acp-session-id", session);
                self.caller.events(&[self.name(), session]).await
            }
        }
    }

    /// The client posts a message, which is accepted and received.
    async fn ask(&mut self, session: Option<&str>, text: &str) {
        assert_eq!(self.post(session, text).await, 202, "{text}");
        assert_eq!(
            received(&mut *self.link.rx).await,
            Frame::from(text.to_owned())
        );
    }

    async fn post(&self, session: Option<&str>, text: &str) -> u16 {
        let session = session.map(|session| ("acp-session-id", session));
        let fields: Vec<_> = [Some(self.name()), session].into_iter().flatten().collect();
        self.caller.post(&fields, text).await.status.as_u16()
    }

    /// The agent sends a message.
    async fn send(&mut self, text: &str) {
        send(&mut *self.link.tx, text.to_owned()).await.unwrap();
    }
}

fn request(id: u32, method: &str, session: &str) -> String {
    format!(r#"{{"id":{id},"method":"{method}","params":{{"sessionId":"{session}"}}}}"#)
}

fn update(session: &str, text: &str) -> String {
    format!(r#"{{"method":"session/update","params":{{"sessionId":"{session}","text":"{text}"}}}}"#)
}

fn answer(id: u32) -> String {
    format!(r#"{{"id":{id},"result":{{}}}}"#)
}

#[test]
fn messages_go_as_their_scripts_say() {
    run(join_all(
        runs_of("http/streams.txt", &[]).into_iter().map(play),
    ));
}

async fn play(mut script: Run) {
    let mut connection = Connection::new(Limits::default()).await;
    let mut streams = HashMap::new();
    for line in std::mem::take(&mut script.lines) {
        let Some(line) = script.expand(&line) else {
            continue;
        };
        let at = format!("{}: {line}", script.case);
        let (word, rest) = line.split_once(' ').expect(&at);
        let (first, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let session = Some(first).filter(|session| *session != "-");
        match word {
            ">" => connection.ask(session, text).await,
            "<" => connection.send(rest).await,
            "POST" => {
                let (status, text) = text.split_once(' ').expect(&at);
                let found = connection.post(session, text).await.to_string();
                assert_eq!(found, status, "{at}");
            }
            "open" => {
                let fields = [vec![connection.name()], fields(text)].concat();
                let events = connection.caller.events(&fields).await;
                streams.insert(first.to_owned(), events);
            }
            "leave" => {
                streams.remove(first);
                // Until the server has noticed it.
                let fields = [&[connection.name(), EVENTS][..], &fields(text)].concat();
                while connection.caller.try_events(&fields).await.is_none() {}
            }
            stream => {
                let name = stream.trim_end_matches(':');
                let events = streams.get_mut(name).expect(&at);
                match (stream.strip_suffix(':'), text.strip_prefix("is ")) {
                    (Some(_), _) => assert_eq!(events.data().await, rest, "{at}"),
                    // The id of its next event, which has no data.
                    (None, Some(id)) => assert_eq!(events.next().await.unwrap().id, id, "{at}"),
                    (None, None) => script.set(text, events.next().await.unwrap().id),
                }
            }
        }
    }
}

#[test]
fn a_client_that_reconnects_is_sent_all_it_missed_or_refused() {
    run(async {
        let limits = Limits {
            http_replay: 2000,
            ..Limits::default()
        };
        let mut connection = Connection::new(limits).await;
        let mut own = connection.events(None).await;
        let text = |number: u32| format!(r#"{{"method":"n","params":{{"number":{number}}}}}"#);
        let mut ids = Vec::new();
        for number in 0..10 {
            connection.send(&text(number)).await;
            let event = own.event().await;
            assert_eq!(event.data, text(number));
            ids.push(event.id);
        }
        let back = async |connection: &Connection, id: &str| {
            connection
                .caller
                .events(&[connection.name(), ("last-event-id", id)])
                .await
        };
        // It takes over while the first is open, and repeats everything since then.
        let mut again = back(&connection, &ids[6]).await;
        assert!(own.ends().await);
        for number in 7..10 {
            let event = again.event().await;
            assert_eq!(
                (event.data, &event.id),
                (text(number), &ids[number as usize])
            );
        }
        connection.send(&text(10)).await;
        assert_eq!(again.data().await, text(10));
        // There is nothing after the last one yet.
        let last = back(&connection, &ids[9]).await;
        drop((again, last));
        // Some 20 of these are kept; a stream without the earlier ones would have an unseen gap.
        let mut own = back(&connection, &ids[9]).await;
        for number in 10..60 {
            if number > 10 {
                connection.send(&text(number)).await;
            }
            assert_eq!(own.data().await, text(number));
        }
        let other = ids[9].replacen("-0-", "-1-", 1);
        for id in [&ids[9], &ids[0], &other] {
            let fields = [connection.name(), ("last-event-id", id)];
            let reply = connection.caller.no_events(&fields).await;
            assert_eq!(reply.status.as_u16(), 410, "{id}");
            assert_eq!(reply.fields["content-type"], "application/json");
        }
        // A refused request does not affect the open stream.
        connection.send(&text(60)).await;
        assert_eq!(own.data().await, text(60));
    });
}

#[test]
fn waiting_messages_pause_the_agent_and_are_not_lost() {
    run(async {
        let limits = Limits {
            http_waiting: 100_000,
            ..Limits::default()
        };
        let mut connection = Connection::new(limits).await;
        connection
            .ask(Some("a"), &request(1, "session/prompt", "a"))
            .await;
        let text = |number: usize| update("a", &format!("{number} {}", "x".repeat(1000)));
        let mut given = 0;
        while let Ok(ready) =
            timeout(Duration::from_millis(200), ready(&mut *connection.link.tx)).await
        {
            ready.unwrap();
            connection.link.tx.start_send(text(given).into()).unwrap();
            given += 1;
            assert!(given < 200, "it never paused");
        }
        let mut a = connection.events(Some("a")).await;
        for number in 0..given {
            assert_eq!(a.data().await, text(number));
        }
        ready(&mut *connection.link.tx).await.unwrap();
    });
}

#[test]
fn messages_of_a_session_without_a_stream_come_on_the_connections_stream() {
    run(async {
        let limits = Limits {
            http_stream_open: Duration::from_millis(50),
            ..Limits::default()
        };
        let mut connection = Connection::new(limits).await;
        let mut own = connection.events(None).await;
        connection
            .ask(None, &request(1, "session/prompt", "a"))
            .await;
        connection
            .ask(None, &request(2, "session/prompt", "b"))
            .await;
        for text in ["one", "two"] {
            connection.send(&update("a", text)).await;
            connection.send(&update("b", text)).await;
        }
        connection.send(&answer(1)).await;
        // In the order they came in, and without waiting again.
        for text in ["one", "two"] {
            for session in ["a", "b"] {
                assert_eq!(own.data().await, update(session, text));
            }
        }
        assert_eq!(own.data().await, answer(1));
        connection.send(&update("a", "three")).await;
        assert_eq!(own.data().await, update("a", "three"));
        // Until the client opens it.
        let mut a = connection.events(Some("a")).await;
        connection.send(&update("a", "four")).await;
        assert_eq!(a.data().await, update("a", "four"));
    });
}

#[test]
fn streams_of_unknown_sessions_are_limited() {
    run(async {
        let limits = Limits {
            http_unknown_sessions: 3,
            ..Limits::default()
        };
        let mut connection = Connection::new(limits).await;
        let mut open = Vec::new();
        for session in ["a", "b", "c"] {
            open.push(connection.events(Some(session)).await);
        }
        let d = [connection.name(), ("acp-session-id", "d")];
        assert_eq!(connection.caller.no_events(&d).await.status.as_u16(), 404);
        connection
            .ask(Some("d"), &request(1, "session/load", "d"))
            .await;
        let _d = connection.events(Some("d")).await;
        connection
            .ask(Some("a"), &request(2, "session/load", "a"))
            .await;
        let _e = connection.events(Some("e")).await;
    });
}

#[test]
fn a_large_message_arrives_whole_and_keepalives_are_sent() {
    run(async {
        let limits = Limits {
            http_keepalive: Duration::from_millis(50),
            ..Limits::default()
        };
        let mut connection = Connection::new(limits).await;
        let mut own = connection.events(None).await;
        let first = own.next().await.unwrap();
        assert_eq!(first.retry, "1000");
        let keepalive = own.next().await.unwrap();
        assert_eq!(keepalive.comment.as_deref(), Some(""));
        let large = format!(r#"{{"id":1,"result":"{}"}}"#, "é".repeat(500_000));
        for text in [&large, "{}", &large] {
            let tx = &mut connection.link.tx;
            let (sent, event) = tokio::join!(send(&mut **tx, text.to_owned()), own.event());
            sent.unwrap();
            assert!(event.data == *text);
        }
    });
}
