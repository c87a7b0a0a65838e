//! Admission, and how long it lasts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::process::Signal;

use super::super::support_ws::WebSocket;
use super::support::serve;
use crate::support::http::{Caller, INITIALIZE};
use crate::support::link::run as block_on;
use crate::support::program::{Program, run_in};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_request_through_a_proxy_is_not_from_the_users_own_programs() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let options = "--listen http://127.0.0.1:0 --allow-host relay.example";
        let mut program = serve(state.path(), options, "");
        let client = Caller::to(&program.address().await);
        let own = format!("Host: {}\r\n", client.host);
        for (fields, status) in [
            (own.clone(), 200),
            ("Host: relay.example\r\n".to_owned(), 401),
            (format!("{own}X-Forwarded-For: 192.0.2.1\r\n"), 401),
            (format!("{own}X-Forwarded-Proto: https\r\n"), 401),
            (format!("{own}X-Forwarded-Of-Its-Own: 1\r\n"), 401),
        ] {
            let length = INITIALIZE.len();
            let request = format!(
                "POST /acp HTTP/1.1\r\n{fields}Content-Type: application/json\r\n\
                 Connection: close\r\nContent-Length: {length}\r\n\r\n{INITIALIZE}"
            );
            let answer = client.raw(&request).await;
            let begins = format!("HTTP/1.1 {status} ");
            assert!(answer.starts_with(&begins), "{request}\n{answer}");
        }
    });
}

#[test]
fn only_the_owner_may_open_the_store_and_the_admin_socket() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let [store, admin] = ["store.db", "admin"].map(|name| state.path().join(name));
        let at = format!("unix:{}", admin.display());
        let options = [
            "serve",
            "--listen",
            "agent-connect+http://127.0.0.1:0/acp",
            "--store",
            store.to_str().unwrap(),
            "--admin",
            &at,
            "--",
            "cat",
        ];
        // The second finds the socket that the first has left behind.
        for _ in 0..2 {
            let mut program = Program::start_in(state.path(), &options);
            let mut reported = String::new();
            while !reported.contains("listening on") {
                reported += &program.complaint().await.expect(&reported);
            }
            assert_eq!(
                (mode(&store), mode(&admin) & 0o077),
                (0o600, 0),
                "{reported}"
            );
            program.signal(Signal::KILL);
            program.exit().await;
            assert!(admin.exists());
        }
        fs::set_permissions(&store, Permissions::from_mode(0o644)).unwrap();
        let outcome = run_in(state.path(), &options).await;
        assert!(!matches!(outcome.code, Some(0) | None), "{outcome:?}");
        assert!(outcome.stderr.contains("store.db"), "{outcome:?}");
    });
}

#[test]
fn a_client_with_the_users_token_is_closed_when_the_token_is_replaced() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let options = "--require-token --limit credential-check=100ms";
        let mut program = serve(state.path(), options, "");
        let address = program.address().await;
        let token = run_in(state.path(), &["token", "show"]).await.stdout;
        let fields = format!("Authorization: Bearer {}\r\n", token.trim());
        let mut client = WebSocket::open(&address, &fields).await;
        client.begin().await;
        fs::remove_file(state.path().join("token")).unwrap();
        let other = run_in(state.path(), &["token", "show"]).await.stdout;
        assert_ne!(other, token);
        assert_eq!(client.closed().await.0, 4401);
    });
}
