//! Which stream a message comes on, what waits there, and what a client that comes back is sent.

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

/// A client with an open connection, and the relay's end of it.
struct Talk {
    caller: Caller,
    id: String,
    link: Link,
    _site: Site,
}

impl Talk {
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

    /// The client says something, which is taken and heard.
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

    /// The agent says something.
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
        let mut talk = Talk::new(Limits::default()).await;
        let mut own = talk.events(None).await;
        // Before anybody was told of a session it speaks on the connection's stream.
        talk.ask(None, r#"{"id":1,"method":"session/new","params":{}}"#)
            .await;
        talk.send(&update("a", "early")).await;
        assert_eq!(own.data().await, update("a", "early"));
        let new = r#"{"id":1,"result":{"sessionId":"a"}}"#;
        talk.send(new).await;
        assert_eq!(own.data().await, new);
        // From then on its stream has it, opened or not.
        talk.send(&update("a", "late")).await;
        let mut a = talk.events(Some("a")).await;
        assert_eq!(a.fields["acp-session-id"], "a");
        assert_eq!(a.data().await, update("a", "late"));
        // Opened before anybody knows of it; the client names it then.
        let mut b = talk.events(Some("b")).await;
        talk.ask(Some("b"), &request(2, "session/load", "b")).await;
        talk.send(&update("b", "history")).await;
        assert_eq!(b.data().await, update("b", "history"));
        talk.send(&answer(2)).await;
        assert_eq!(b.data().await, answer(2));
        talk.ask(Some("a"), &request(3, "session/prompt", "a"))
            .await;
        talk.ask(Some("b"), &request(4, "session/prompt", "b"))
            .await;
        talk.ask(Some("a"), &request(5, "session/fork", "a")).await;
        // Answers in another order.
        for id in [5, 4, 3] {
            talk.send(&answer(id)).await;
        }
        assert_eq!(own.data().await, answer(5));
        assert_eq!(b.data().await, answer(4));
        assert_eq!(a.data().await, answer(3));
        // What names no session, and what is not understood at all.
        for text in [
            r#"{"method":"$/cancel","params":{"sessionId":"a"}}"#,
            "{}",
            "nonsense",
        ] {
            talk.send(text).await;
            assert_eq!(own.data().await, text);
        }
    });
}

#[test]
fn the_answer_that_lets_into_a_session_comes_behind_its_history() {
    let methods = ["session/load", "session/resume"];
    for method in methods {
        run(async {
            let mut talk = Talk::new(Limits::default()).await;
            let mut own = talk.events(None).await;
            // Nobody has its stream open: all on one stream, even if it is opened meanwhile.
            talk.ask(None, &request(1, method, "a")).await;
            talk.send(&update("a", "one")).await;
            assert_eq!(own.data().await, update("a", "one"));
            let mut a = talk.events(Some("a")).await;
            talk.send(&update("a", "two")).await;
            talk.send(&answer(1)).await;
            assert_eq!(own.data().await, update("a", "two"));
            assert_eq!(own.data().await, answer(1));
            talk.send(&update("a", "three")).await;
            assert_eq!(a.data().await, update("a", "three"));
            // It is open, as the official clients of TypeScript and Rust have it.
            talk.ask(Some("a"), &request(2, method, "a")).await;
            talk.send(&update("a", "four")).await;
            talk.send(&answer(2)).await;
            talk.send(&update("a", "five")).await;
            assert_eq!(a.data().await, update("a", "four"));
            assert_eq!(a.data().await, answer(2));
            assert_eq!(a.data().await, update("a", "five"));
            // Without a history as well: what comes after the answer must not come before it.
            talk.ask(None, &request(3, method, "b")).await;
            talk.send(&answer(3)).await;
            assert_eq!(own.data().await, answer(3));
        });
    }
}

#[test]
fn a_history_whose_stream_broke_is_still_before_the_answer() {
    run(async {
        let mut talk = Talk::new(Limits::default()).await;
        let mut own = talk.events(None).await;
        let mut a = talk.events(Some("a")).await;
        let opening = a.next().await.unwrap();
        talk.ask(Some("a"), &request(1, "session/load", "a")).await;
        talk.send(&update("a", "one")).await;
        assert_eq!(a.data().await, update("a", "one"));
        // It broke before the client had read that.
        drop(a);
        let fresh = [
            talk.name(),
            ("acp-session-id", "a"),
            ("accept", "text/event-stream"),
        ];
        while talk.caller.try_events(&fresh).await.is_none() {}
        talk.send(&answer(1)).await;
        let back = [
            talk.name(),
            ("acp-session-id", "a"),
            ("last-event-id", &opening.id),
        ];
        let mut a = talk.caller.events(&back).await;
        assert_eq!(a.data().await, update("a", "one"));
        assert_eq!(a.data().await, answer(1));
        talk.send("{}").await;
        assert_eq!(own.data().await, "{}");
    });
}

#[test]
fn an_answer_is_held_against_the_session_of_its_request() {
    run(async {
        let mut talk = Talk::new(Limits::default()).await;
        let mut a = talk.events(Some("a")).await;
        talk.ask(Some("a"), &request(1, "session/prompt", "a"))
            .await;
        let permission = request(0, "session/request_permission", "a");
        talk.send(&permission).await;
        assert_eq!(a.data().await, permission);
        assert_eq!(talk.post(Some("b"), &answer(0)).await, 400);
        // The official Rust client names no session here.
        talk.ask(None, &answer(0)).await;
        talk.send(&permission).await;
        assert_eq!(a.data().await, permission);
        talk.ask(Some("a"), &answer(0)).await;
        // One that nobody asked for is the core's to judge.
        talk.ask(Some("b"), &answer(99)).await;
    });
}

#[test]
fn the_header_alone_chooses_the_stream_of_the_answer() {
    run(async {
        let mut talk = Talk::new(Limits::default()).await;
        let mut a = talk.events(Some("a")).await;
        let text = r#"{"id":1,"method":"session/prompt","params":{}}"#;
        talk.ask(Some("a"), text).await;
        talk.send(&answer(1)).await;
        assert_eq!(a.data().await, answer(1));
        // The session in the message alone will do as well.
        talk.ask(None, &request(2, "session/prompt", "a")).await;
        talk.send(&answer(2)).await;
        assert_eq!(a.data().await, answer(2));
    });
}

#[test]
fn a_repeated_message_is_received_once() {
    run(async {
        let mut talk = Talk::new(Limits::default()).await;
        let mut a = talk.events(Some("a")).await;
        let prompt = request(1, "session/prompt", "a");
        talk.ask(Some("a"), &prompt).await;
        assert_eq!(talk.post(Some("a"), &prompt).await, 202, "while it is open");
        let other = request(1, "session/set_mode", "a");
        assert_eq!(talk.post(Some("a"), &other).await, 409);
        talk.send(&answer(1)).await;
        assert_eq!(a.data().await, answer(1));
        assert_eq!(
            talk.post(Some("a"), &prompt).await,
            202,
            "once it is answered"
        );
        let permission = request(1, "session/request_permission", "a");
        talk.send(&permission).await;
        talk.ask(Some("a"), &answer(1)).await;
        assert_eq!(talk.post(Some("a"), &answer(1)).await, 202);
        // Ids may be used again for something else; and for a new question the same answer is new.
        talk.ask(Some("a"), &other).await;
        talk.send(&permission).await;
        talk.ask(Some("a"), &answer(1)).await;
        // Notifications have no id and are what they are.
        let notice = r#"{"method":"x"}"#;
        talk.ask(None, notice).await;
        talk.ask(None, notice).await;
    });
}

#[test]
fn a_client_that_comes_back_is_sent_all_it_missed_or_refused() {
    run(async {
        let limits = Limits {
            http_replay: 2000,
            ..Limits::default()
        };
        let mut talk = Talk::new(limits).await;
        let mut own = talk.events(None).await;
        let text = |number: u32| format!(r#"{{"method":"n","params":{{"number":{number}}}}}"#);
        let mut ids = Vec::new();
        for number in 0..10 {
            talk.send(&text(number)).await;
            let event = own.event().await;
            assert_eq!(event.data, text(number));
            ids.push(event.id);
        }
        let back = async |talk: &Talk, id: &str| {
            talk.caller
                .events(&[talk.name(), ("last-event-id", id)])
                .await
        };
        // It takes over while the first is open, and has all since then, once more.
        let mut again = back(&talk, &ids[6]).await;
        assert!(own.ends().await);
        for number in 7..10 {
            let event = again.event().await;
            assert_eq!(
                (event.data, &event.id),
                (text(number), &ids[number as usize])
            );
        }
        talk.send(&text(10)).await;
        assert_eq!(again.data().await, text(10));
        // From the last one on there is nothing yet.
        let last = back(&talk, &ids[9]).await;
        drop((again, last));
        // Some 20 of these are kept; what was before is gone, and a part would look like all.
        let mut own = back(&talk, &ids[9]).await;
        for number in 10..60 {
            if number > 10 {
                talk.send(&text(number)).await;
            }
            assert_eq!(own.data().await, text(number));
        }
        let other = ids[9].replacen("-0-", "-1-", 1);
        for id in [&ids[9], &ids[0], &other] {
            let fields = [talk.name(), ("last-event-id", id)];
            let reply = talk.caller.no_events(&fields).await;
            assert_eq!(reply.status.as_u16(), 410, "{id}");
            assert_eq!(reply.fields["content-type"], "application/json");
        }
        // A refusal takes nothing from whoever has the stream.
        talk.send(&text(60)).await;
        assert_eq!(own.data().await, text(60));
    });
}

#[test]
fn a_stream_that_broke_before_its_first_message_is_taken_up() {
    run(async {
        let mut talk = Talk::new(Limits::default()).await;
        for session in [None, Some("a")] {
            let opening = talk.events(session).await.next().await.unwrap();
            assert_eq!(opening.data, "");
            // The server may not have seen yet that nobody is there any more.
            let mut fields = vec![talk.name(), ("last-event-id", &opening.id)];
            fields.extend(session.map(|session| ("acp-session-id", session)));
            let mut again = talk.caller.events(&fields).await;
            assert_eq!(again.next().await.unwrap(), opening);
            match session {
                None => talk.send(r#"{"method":"first"}"#).await,
                Some(_) => {
                    talk.ask(session, &request(1, "session/prompt", "a")).await;
                    talk.send(&update("a", "first")).await;
                }
            }
            let first = again.event().await;
            assert!(first.data.contains("first"), "{first:?}");
            assert_ne!(first.id, opening.id);
        }
    });
}

#[test]
fn what_waits_pauses_the_agent_and_is_not_lost() {
    run(async {
        let limits = Limits {
            http_waiting: 100_000,
            ..Limits::default()
        };
        let mut talk = Talk::new(limits).await;
        talk.ask(Some("a"), &request(1, "session/prompt", "a"))
            .await;
        let text = |number: usize| update("a", &format!("{number} {}", "x".repeat(1000)));
        let mut given = 0;
        while let Ok(ready) = timeout(Duration::from_millis(200), ready(&mut *talk.link.tx)).await {
            ready.unwrap();
            talk.link.tx.start_send(text(given).into()).unwrap();
            given += 1;
            assert!(given < 200, "it never paused");
        }
        let mut a = talk.events(Some("a")).await;
        for number in 0..given {
            assert_eq!(a.data().await, text(number));
        }
        ready(&mut *talk.link.tx).await.unwrap();
    });
}

#[test]
fn a_session_whose_stream_nobody_opens_is_carried_by_the_connection() {
    run(async {
        let limits = Limits {
            http_stream_open: Duration::from_millis(50),
            ..Limits::default()
        };
        let mut talk = Talk::new(limits).await;
        let mut own = talk.events(None).await;
        talk.ask(None, &request(1, "session/prompt", "a")).await;
        talk.ask(None, &request(2, "session/prompt", "b")).await;
        for text in ["one", "two"] {
            talk.send(&update("a", text)).await;
            talk.send(&update("b", text)).await;
        }
        talk.send(&answer(1)).await;
        // In the order they came in, and without waiting again.
        for text in ["one", "two"] {
            for session in ["a", "b"] {
                assert_eq!(own.data().await, update(session, text));
            }
        }
        assert_eq!(own.data().await, answer(1));
        talk.send(&update("a", "three")).await;
        assert_eq!(own.data().await, update("a", "three"));
        // Until somebody opens it.
        let mut a = talk.events(Some("a")).await;
        talk.send(&update("a", "four")).await;
        assert_eq!(a.data().await, update("a", "four"));
    });
}

#[test]
fn streams_for_sessions_nobody_has_named_are_few() {
    run(async {
        let limits = Limits {
            http_unknown_sessions: 3,
            ..Limits::default()
        };
        let mut talk = Talk::new(limits).await;
        let mut open = Vec::new();
        for session in ["a", "b", "c"] {
            open.push(talk.events(Some(session)).await);
        }
        let d = [talk.name(), ("acp-session-id", "d")];
        assert_eq!(talk.caller.no_events(&d).await.status.as_u16(), 404);
        talk.ask(Some("d"), &request(1, "session/load", "d")).await;
        let _d = talk.events(Some("d")).await;
        talk.ask(Some("a"), &request(2, "session/load", "a")).await;
        let _e = talk.events(Some("e")).await;
    });
}

#[test]
fn a_large_message_comes_whole_and_silence_is_broken() {
    run(async {
        let limits = Limits {
            http_keepalive: Duration::from_millis(50),
            ..Limits::default()
        };
        let mut talk = Talk::new(limits).await;
        let mut own = talk.events(None).await;
        let first = own.next().await.unwrap();
        assert_eq!(first.retry, "1000");
        let sign = own.next().await.unwrap();
        assert_eq!(sign.comment.as_deref(), Some(""));
        let large = format!(r#"{{"id":1,"result":"{}"}}"#, "é".repeat(500_000));
        for text in [&large, "{}", &large] {
            let tx = &mut talk.link.tx;
            let (reported, event) = tokio::join!(send(&mut **tx, text.to_owned()), own.event());
            reported.unwrap();
            assert!(event.data == *text);
        }
    });
}
