//! `[auth]` in the file, end to end: admission, agents, and changes by SIGHUP.

use super::stage::{JSON, Stage, reload};
use crate::support::http::{Caller, INITIALIZE};
use crate::support::link::run as block_on;
use crate::support::program::{Program, run_in};

const TWO: &str = r#"
default-agent = "one"
[agents.one]
command = ["AGENT"]
[agents.two]
command = ["AGENT"]
[[listeners]]
endpoint = "http://127.0.0.1:0"
"#;

#[test]
fn a_token_admits_to_its_agents_and_the_file_requires_tokens() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let stage = Stage::with(&format!("{TWO}[auth]\nrequire-token = true\n"));
        let made = run_in(state.path(), &["token", "new", "alice", "--agents", "two"]).await;
        let alice = format!("Bearer {}", made.stdout.trim_end());
        let mut serve = stage.command(&[]);
        serve.env("ACP_RELAY_STATE_DIR", state.path());
        let mut serve = Program::of(serve);
        let caller = Caller::to(&serve.address().await);
        let ask = async |path: &str, token: Option<&str>| {
            let token = token.map(|token| ("authorization", token));
            let fields: Vec<_> = [JSON].into_iter().chain(token).collect();
            let reply = caller.ask("POST", path, &fields, INITIALIZE).await;
            (reply.status.as_u16(), reply.body)
        };
        for (path, token, status) in [
            ("/acp", None, 401),
            ("/agents/two/acp", None, 401),
            ("/agents/two/acp", Some("Bearer nobody"), 401),
            ("/agents/two/acp", Some(&*alice), 200),
            ("/agents/one/acp", Some(&alice), 403),
            ("/acp", Some(&alice), 403),
            ("/agents/three/acp", Some(&alice), 404),
        ] {
            let (got, body) = ask(path, token).await;
            assert_eq!(got, status, "{path} {body}");
            assert!(
                !body.contains(alice.trim_start_matches("Bearer ")),
                "{body}"
            );
        }
        // Now the user's own programs need none, and others still do.
        stage.write(TWO);
        reload(&mut serve).await;
        assert_eq!(ask("/acp", None).await.0, 200);
        assert_eq!(ask("/acp", Some("Bearer nobody")).await.0, 401);
        assert_eq!(ask("/agents/one/acp", Some(&alice)).await.0, 403);
    });
}
