//! Which stream a message comes on, what waits there, and what a client that reconnects is sent.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::time::Duration;

use acp_relay::jsonrpc::{Frame, Limits};
use acp_relay::transport::Link;
use tokio::time::timeout;

use super::caller::{Caller, How, Open, Site};
use crate::support::link::{ready, received, run, send};

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

    async fn events(&self, session: Option<&str>) -> super::caller::Events {
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
fn every_message_comes_on_its_stream() {
    run(async {
        let mut connection = Connection::new(Limits::default()).await;
        let mut own = connection.events(None).await;
        // Before the client knows a session, its messages come on the connection's stream.
        connection
            .ask(None, r#"{"id":1,"method":"session/new","params":{}}"#)
            .await;
        connection.send(&update("a", "early")).await;
        assert_eq!(own.data().await, update("a", "early"));
        let new = r#"{"id":1,"result":{"sessionId":"a"}}"#;
        connection.send(new).await;
        assert_eq!(own.data().await, new);
        // From then on they come on the session's stream, open or not.
        connection.send(&update("a", "late")).await;
        let mut a = connection.events(Some("a")).await;
        assert_eq!(a.fields["acp-session-id"], "a");
        assert_eq!(a.data().await, update("a", "late"));
        // A stream opened before its session is known; the client names it then.
        let mut b = connection.events(Some("b")).await;
        connection
            .ask(Some("b"), &request(2, "session/load", "b"))
            .await;
        connection.send(&update("b", "history")).await;
        assert_eq!(b.data().await, update("b", "history"));
        connection.send(&answer(2)).await;
        assert_eq!(b.data().await, answer(2));
        connection
            .ask(Some("a"), &request(3, "session/prompt", "a"))
            .await;
        connection
            .ask(Some("b"), &request(4, "session/prompt", "b"))
            .await;
        connection
            .ask(Some("a"), &request(5, "session/fork", "a"))
            .await;
        // Answers in another order.
        for id in [5, 4, 3] {
            connection.send(&answer(id)).await;
        }
        assert_eq!(own.data().await, answer(5));
        assert_eq!(b.data().await, answer(4));
        assert_eq!(a.data().await, answer(3));
        // Messages that name no session, and text that is no message.
        for text in [
            r#"{"method":"$/cancel","params":{"sessionId":"a"}}"#,
            "{}",
            "nonsense",
        ] {
            connection.send(text).await;
            assert_eq!(own.data().await, text);
        }
    });
}

#[test]
fn the_answer_to_a_load_or_resume_follows_the_history() {
    let methods = ["session/load", "session/resume"];
    for method in methods {
        run(async {
            let mut connection = Connection::new(Limits::default()).await;
            let mut own = connection.events(None).await;
            // The session's stream is not open: all comes on one stream, even if it opens later.
            connection.ask(None, &request(1, method, "a")).await;
            connection.send(&update("a", "one")).await;
            assert_eq!(own.data().await, update("a", "one"));
            let mut a = connection.events(Some("a")).await;
            connection.send(&update("a", "two")).await;
            connection.send(&answer(1)).await;
            assert_eq!(own.data().await, update("a", "two"));
            assert_eq!(own.data().await, answer(1));
            connection.send(&update("a", "three")).await;
            assert_eq!(a.data().await, update("a", "three"));
            // The stream is open, as with the official clients of TypeScript and Rust.
            connection.ask(Some("a"), &request(2, method, "a")).await;
            connection.send(&update("a", "four")).await;
            connection.send(&answer(2)).await;
            connection.send(&update("a", "five")).await;
            assert_eq!(a.data().await, update("a", "four"));
            assert_eq!(a.data().await, answer(2));
            assert_eq!(a.data().await, update("a", "five"));
            // Without a history as well: later messages must not overtake the answer.
            connection.ask(None, &request(3, method, "b")).await;
            connection.send(&answer(3)).await;
            assert_eq!(own.data().await, answer(3));
        });
    }
}

#[test]
fn a_history_whose_stream_broke_still_precedes_the_answer() {
    run(async {
        let mut connection = Connection::new(Limits::default()).await;
        let mut own = connection.events(None).await;
        let mut a = connection.events(Some("a")).await;
        let opening = a.next().await.unwrap();
        connection
            .ask(Some("a"), &request(1, "session/load", "a"))
            .await;
        connection.send(&update("a", "one")).await;
        assert_eq!(a.data().await, update("a", "one"));
        // The stream breaks before the client has read the update.
        drop(a);
        let fresh = [
            connection.name(),
            ("acp-session-id", "a"),
            ("accept", "text/event-stream"),
        ];
        while connection.caller.try_events(&fresh).await.is_none() {}
        connection.send(&answer(1)).await;
        let back = [
            connection.name(),
            ("acp-session-id", "a"),
            ("last-event-id", &opening.id),
        ];
        let mut a = connection.caller.events(&back).await;
        assert_eq!(a.data().await, update("a", "one"));
        assert_eq!(a.data().await, answer(1));
        connection.send("{}").await;
        assert_eq!(own.data().await, "{}");
    });
}

#[test]
fn an_answer_must_name_the_session_of_its_request() {
    run(async {
        let mut connection = Connection::new(Limits::default()).await;
        let mut a = connection.events(Some("a")).await;
        connection
            .ask(Some("a"), &request(1, "session/prompt", "a"))
            .await;
        let permission = request(0, "session/request_permission", "a");
        connection.send(&permission).await;
        assert_eq!(a.data().await, permission);
        assert_eq!(connection.post(Some("b"), &answer(0)).await, 400);
        // The official Rust client names no session here.
        connection.ask(None, &answer(0)).await;
        connection.send(&permission).await;
        assert_eq!(a.data().await, permission);
        connection.ask(Some("a"), &answer(0)).await;
        // The core decides about an answer to no request.
        connection.ask(Some("b"), &answer(99)).await;
    });
}

#[test]
fn the_header_alone_chooses_the_stream_of_the_answer() {
    run(async {
        let mut connection = Connection::new(Limits::default()).await;
        let mut a = connection.events(Some("a")).await;
        let text = r#"{"id":1,"method":"session/prompt","params":{}}"#;
        connection.ask(Some("a"), text).await;
        connection.send(&answer(1)).await;
        assert_eq!(a.data().await, answer(1));
        // The session in the message alone is enough as well.
        connection
            .ask(None, &request(2, "session/prompt", "a"))
            .await;
        connection.send(&answer(2)).await;
        assert_eq!(a.data().await, answer(2));
    });
}

#[test]
fn a_repeated_message_is_received_once() {
    run(async {
        let mut connection = Connection::new(Limits::default()).await;
        let mut a = connection.events(Some("a")).await;
        let prompt = request(1, "session/prompt", "a");
        connection.ask(Some("a"), &prompt).await;
        assert_eq!(
            connection.post(Some("a"), &prompt).await,
            202,
            "while it is open"
        );
        let other = request(1, "session/set_mode", "a");
        assert_eq!(connection.post(Some("a"), &other).await, 409);
        connection.send(&answer(1)).await;
        assert_eq!(a.data().await, answer(1));
        assert_eq!(
            connection.post(Some("a"), &prompt).await,
            202,
            "once it is answered"
        );
        let permission = request(1, "session/request_permission", "a");
        connection.send(&permission).await;
        connection.ask(Some("a"), &answer(1)).await;
        assert_eq!(connection.post(Some("a"), &answer(1)).await, 202);
        // An id may be reused for another request, and the same answer for a new request is new.
        connection.ask(Some("a"), &other).await;
        connection.send(&permission).await;
        connection.ask(Some("a"), &answer(1)).await;
        // Notifications have no id and are never repetitions.
        let notice = r#"{"method":"x"}"#;
        connection.ask(None, notice).await;
        connection.ask(None, notice).await;
    });
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
fn a_stream_that_broke_before_its_first_message_is_resumed() {
    run(async {
        let mut connection = Connection::new(Limits::default()).await;
        for session in [None, Some("a")] {
            let opening = connection.events(session).await.next().await.unwrap();
            assert_eq!(opening.data, "");
            // The server may not have noticed yet that the client is gone.
            let mut fields = vec![connection.name(), ("last-event-id", &opening.id)];
            fields.extend(session.map(|session| ("acp-session-id", session)));
            let mut again = connection.caller.events(&fields).await;
            assert_eq!(again.next().await.unwrap(), opening);
            match session {
                None => connection.send(r#"{"method":"first"}"#).await,
                Some(_) => {
                    connection
                        .ask(session, &request(1, "session/prompt", "a"))
                        .await;
                    connection.send(&update("a", "first")).await;
                }
            }
            let first = again.event().await;
            assert!(first.data.contains("first"), "{first:?}");
            assert_ne!(first.id, opening.id);
        }
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
