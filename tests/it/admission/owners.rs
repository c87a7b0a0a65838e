//! What a principal has opened is found by it alone: connections over HTTP, and detached agents.

use std::sync::Arc;

use acp_relay::auth::{AuthMethod, AuthRequirement, Digest, Grant, Principal};
use acp_relay::jsonrpc::{Frame, Limits};
use acp_relay::proxy::ConversationStore;
use acp_relay::transport::{Link, Listener, Setup};

use super::gate::{gate, token};
use crate::support::http::{Caller, INITIALIZE, INITIALIZED};
use crate::support::link::{accept, listen, received, run, send, setup};

/// A listener, a caller of it, and alice's credentials.
async fn open() -> (Box<dyn Listener>, Caller, String) {
    let user = rustix::process::geteuid().as_raw();
    let setup = Setup {
        gate: gate(AuthRequirement::User, user, 1000),
        ..setup()
    };
    let listener = listen(&"http://127.0.0.1:0".parse().unwrap(), &setup).await;
    let caller = Caller::to(&listener.address().to_string());
    let alice = format!("Bearer {}", token(1).reveal());
    (listener, caller, alice)
}

#[test]
fn a_connection_id_is_useless_to_other_principals() {
    run(async {
        let (mut listener, caller, alice) = open().await;
        let alice = ("authorization", &*alice);
        let asking = async { caller.post(&[alice], INITIALIZE).await };
        let answering = async {
            let mut link = accept(&mut *listener).await;
            received(&mut *link.rx).await;
            send(&mut *link.tx, INITIALIZED).await.unwrap();
            link
        };
        let (reply, mut link) = tokio::join!(asking, answering);
        assert_eq!(
            link.peer.principal.as_ref().unwrap().to_string(),
            "token alice"
        );
        let id = reply.fields["acp-connection-id"].to_str().unwrap();
        let name = ("acp-connection-id", id);
        let note = r#"{"jsonrpc":"2.0","method":"n"}"#;
        // The relay's own user is another principal, too.
        for credentials in [&[name][..], &[name, ("authorization", "Bearer x")]] {
            let expected = if credentials.len() == 1 { 404 } else { 401 };
            assert_eq!(
                caller.post(credentials, note).await.status.as_u16(),
                expected
            );
            assert_eq!(
                caller.no_events(credentials).await.status.as_u16(),
                expected
            );
            let deleted = caller.ask("DELETE", "/acp", credentials, "").await;
            assert_eq!(deleted.status.as_u16(), expected);
        }
        assert_eq!(caller.post(&[name, alice], note).await.status.as_u16(), 202);
        assert_eq!(received(&mut *link.rx).await, Frame::from(note));
    });
}

#[test]
fn two_principals_may_use_the_same_client_id() {
    run(async {
        let (mut listener, caller, alice) = open().await;
        let json = ("content-type", "application/json");
        let note = |credentials| format!(r#"{{"jsonrpc":"2.0","method":"{credentials}"}}"#);
        let path = "/acp/rpc?client_id=1";
        for (credentials, fields) in [
            ("me", &[json][..]),
            ("alice", &[json, ("authorization", &alice)]),
        ] {
            let body = note(credentials);
            let (reply, mut link) = tokio::join!(
                caller.ask("POST", path, fields, &body),
                accept(&mut *listener)
            );
            assert_eq!(reply.status.as_u16(), 202);
            assert_eq!(received(&mut *link.rx).await, Frame::from(body));
            assert!(
                link.peer
                    .principal
                    .unwrap()
                    .to_string()
                    .ends_with(credentials)
                    || credentials == "me"
            );
        }
    });
}

/// The relay's link to a client of that name, and the client's link.
fn pair(name: &str, method: AuthMethod, token: Option<&str>) -> (Link, Link) {
    let (mut relay, client) = crate::support::memory::pair(&Limits::default());
    relay.peer.principal = Some(Arc::new(Principal {
        name: name.into(),
        auth_method: method,
        grant: Grant::all_agents(false),
        key: token.map(|token| Digest::of(token.as_bytes())),
        expires: None,
        withdrawn: None,
    }));
    (relay, client)
}

#[test]
fn only_the_principal_of_a_conversation_may_resume_it() {
    run(async {
        let store = ConversationStore::new(Arc::new(Limits::default()));
        let new = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}"#;
        let made = r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#;
        let (relay, mut client) = pair("alice", AuthMethod::Token, Some("old"));
        let mut conversation = store.attach(relay).await.unwrap();
        for (asked, answered) in [(INITIALIZE, INITIALIZED), (new, made)] {
            send(&mut *client.tx, asked).await.unwrap();
            received(&mut *conversation.rx).await;
            send(&mut *conversation.tx, answered).await.unwrap();
            received(&mut *client.rx).await;
        }
        let load = r#"{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"s"}}"#;
        let cases = [
            ("bob", AuthMethod::Token, Some("old"), false),
            ("alice", AuthMethod::Certificate, None, false),
            // The one of the conversation was revoked.
            ("alice", AuthMethod::Token, Some("new"), false),
            ("alice", AuthMethod::Token, Some("old"), true),
        ];
        for (name, method, token, back) in cases {
            let (relay, mut client) = pair(name, method, token);
            send(&mut *client.tx, INITIALIZE).await.unwrap();
            send(&mut *client.tx, load).await.unwrap();
            let received = store.attach(relay).await;
            assert_eq!(received.is_none(), back, "{name} {method:?} {token:?}");
        }
    });
}
