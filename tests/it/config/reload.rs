//! SIGHUP reloads the file: new conversations use the new one, running ones continue.

use rustix::process::Signal;

use super::stage::{Client, JSON, Stage, ask, stop};
use crate::support::http::{Caller, INITIALIZE};
use crate::support::link::run as block_on;
use crate::support::program::{Program, run_in};

const BEFORE: &str = r#"
default-agent = "a"
[agents.a]
command = ["AGENT", "before"]
[agents.b]
command = ["AGENT", "b"]
[[listeners]]
endpoint = "http://127.0.0.1:0"
"#;

const AFTER: &str = r#"
default-agent = "c"
[agents.a]
command = ["AGENT", "after"]
[agents.c]
command = ["AGENT", "c"]
[[listeners]]
endpoint = "http://127.0.0.1:0"
allow-origin = ["https://editor.example"]
[[listeners]]
endpoint = "unix:SOCKET"
"#;

#[test]
fn conversations_continue_and_new_ones_use_the_new_file() {
    block_on(async {
        let stage = Stage::with(BEFORE);
        let after = AFTER.replace("SOCKET", stage.path("s").to_str().unwrap());
        let (mut serve, caller) = stage.start().await;
        let old = Client::open(&caller, "/acp").await;
        let mut events = old.events().await;

        stage.write(&after);
        serve.signal(Signal::HUP);
        let unix = serve.address().await;
        let reported = serve.complaint().await.unwrap();
        assert!(reported.ends_with("was reloaded"), "{reported}");

        assert_eq!(
            old.post(r#"{"jsonrpc":"2.0","id":5,"method":"x"}"#).await,
            202
        );
        let answer = events.data().await;
        assert!(answer.contains("before"), "{answer}");
        let pid = old.about["pid"].to_string();
        assert!(answer.contains(&pid), "the same agent: {answer}");

        let new = Client::open(&caller, "/agents/a/acp").await;
        assert_eq!(new.words(), ["after"]);
        assert_eq!(Client::open(&caller, "/acp").await.words(), ["c"]);
        // The refusal is logged, too.
        let missing = caller
            .ask("POST", "/agents/b/acp", &[JSON], INITIALIZE)
            .await;
        assert_eq!(missing.status.as_u16(), 404);
        let page = [JSON, ("origin", "https://editor.example")];
        let page = caller.ask("POST", "/acp", &page, INITIALIZE).await;
        assert_eq!(page.status.as_u16(), 200, "{}", page.body);
        let mut client = Program::start(&["connect", &unix]);
        client.write(&format!("{INITIALIZE}\n")).await;
        assert_eq!(client.json().await["result"]["words"][0], "c");

        assert!(serve.complaint().await.unwrap().contains("404"));

        stage.write(BEFORE);
        serve.signal(Signal::HUP);
        let reported = serve.complaint().await.unwrap();
        assert_eq!(
            reported,
            format!("acp-relay: no longer listening on {unix}")
        );
        assert!(serve.complaint().await.unwrap().ends_with("was reloaded"));
        ask(&mut client, 6).await;
        assert_eq!(
            client.json().await["result"]["words"][0],
            "c",
            "it continues"
        );
        stop(serve).await;
    });
}

#[test]
fn an_invalid_file_changes_nothing() {
    block_on(async {
        let stage = Stage::with(BEFORE);
        let (mut serve, caller) = stage.start().await;
        let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = format!(
            "[[listeners]]\nendpoint = \"tcp://{}\"\n",
            busy.local_addr().unwrap()
        );
        let missing = AFTER
            .replace("AGENT", "/no/such/agent")
            .replace("SOCKET", "/no/such/folder/s");
        for (config, lines) in [
            (BEFORE.replace("command", "comand"), 4),
            (missing, 2),
            (format!("{}{taken}", BEFORE.replace("\"b\"", "\"x\"")), 1),
        ] {
            stage.write(&config);
            serve.signal(Signal::HUP);
            for _ in 0..lines {
                serve.complaint().await.unwrap();
            }
            let reported = serve.complaint().await.unwrap();
            assert!(reported.ends_with("nothing was changed"), "{reported}");
            assert_eq!(Client::open(&caller, "/agents/b/acp").await.words(), ["b"]);
            assert_eq!(Client::open(&caller, "/acp").await.words(), ["before"]);
        }
        drop(busy);
    });
}

#[test]
fn a_changed_listener_at_the_same_port_is_reported() {
    block_on(async {
        let stage = Stage::with(BEFORE);
        let mut serve = stage.serve();
        let address = serve.address().await;
        let place = address
            .strip_prefix("http://")
            .and_then(|at| at.strip_suffix("/acp"));
        let place = place.unwrap();
        for other in [format!("http://{place}/x"), format!("tcp://{place}")] {
            stage.write(&BEFORE.replace("http://127.0.0.1:0", &other));
            serve.signal(Signal::HUP);
            let reported = serve.complaint().await.unwrap();
            assert!(
                reported.contains("this relay itself listens there"),
                "{reported}"
            );
            assert!(
                reported.contains(&address) && reported.contains("after a restart"),
                "{reported}"
            );
            let reported = serve.complaint().await.unwrap();
            assert!(reported.ends_with("nothing was changed"), "{reported}");
        }
    });
}

#[test]
fn a_token_revoked_after_a_reload_ends_its_connections() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let stage = Stage::with(&format!("{BEFORE}[limits]\ncredential-check = \"50ms\"\n"));
        let made = run_in(state.path(), &["token", "new", "alice"]).await;
        let bearer = format!("Bearer {}", made.stdout.trim_end());
        let mut serve = stage.command(&[]);
        serve.env("ACP_RELAY_STATE_DIR", state.path());
        let mut serve = Program::of(serve);
        let caller = Caller::to(&serve.address().await);
        let show = [JSON, ("authorization", bearer.as_str())];
        let opened = caller.ask("POST", "/acp", &show, INITIALIZE).await;
        assert_eq!(opened.status.as_u16(), 200, "{}", opened.body);
        let id = opened.fields["acp-connection-id"].to_str().unwrap();
        let fields = [
            ("acp-connection-id", id),
            ("authorization", bearer.as_str()),
        ];
        let mut events = caller.events(&fields).await;

        let listener = "[[listeners]]\nendpoint = \"tcp://127.0.0.1:0\"\n";
        stage.write(&format!(
            "{BEFORE}{listener}[limits]\ncredential-check = \"50ms\"\n"
        ));
        serve.signal(Signal::HUP);
        serve.address().await;
        assert!(serve.complaint().await.unwrap().ends_with("was reloaded"));
        let revoked = run_in(state.path(), &["token", "revoke", "alice"]).await;
        assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
        while events.next().await.is_some() {}
    });
}

#[test]
fn changes_that_need_a_restart_are_reported() {
    block_on(async {
        let stage = Stage::with(BEFORE);
        let mut serve = stage.serve();
        serve.address().await;
        stage.write(&format!(
            "{BEFORE}[admin]\nlisten = \"127.0.0.1:0\"\n[log]\nlevel = \"info\"\n\
             [traces]\ntrace-context = \"insert\"\n"
        ));
        serve.signal(Signal::HUP);
        let reported = serve.complaint().await.unwrap();
        let later = "was reloaded; changes in [log], [admin], [traces] take effect after a restart";
        assert!(reported.ends_with(later), "{reported}");
    });
}

#[test]
fn a_removed_listener_is_logged_with_its_address() {
    block_on(async {
        let listener = "[[listeners]]\nendpoint = \"http://127.0.0.1:0\"\n";
        let agent = "[agents.a]\ncommand = [\"AGENT\"]\n";
        let more = "[[listeners]]\nendpoint = \"tcp://127.0.0.1:0\"\n";
        let stage = Stage::with(&format!("{agent}{listener}{more}"));
        let mut serve = stage.serve();
        let (_, tcp) = (serve.address().await, serve.address().await);
        assert!(!tcp.ends_with(":0"), "{tcp}");
        stage.write(&format!("{agent}{listener}"));
        serve.signal(Signal::HUP);
        let reported = serve.complaint().await.unwrap();
        assert_eq!(reported, format!("acp-relay: no longer listening on {tcp}"));
    });
}
