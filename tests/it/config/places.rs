//! Which file is read, which is not, and which variables an agent inherits.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::stage::{Client, Stage, ask};
use crate::support::http::Caller;
use crate::support::link::run as block_on;
use crate::support::program::{Program, command, run_command};

const ONE: &str = r#"
[agents.one]
command = ["AGENT", "of the file"]
[[listeners]]
endpoint = "http://127.0.0.1:0"
"#;

#[test]
fn a_file_in_the_current_folder_is_not_read() {
    block_on(async {
        let stage = Stage::with(ONE);
        let mut serve = command(&["serve"]);
        let none = stage.path("none");
        serve
            .current_dir(stage.dir.path())
            .env("XDG_CONFIG_HOME", none);
        let outcome = run_command(serve, "").await;
        assert_eq!(outcome.code, Some(64), "{outcome:?}");
        assert!(outcome.stderr.contains("there is no agent"), "{outcome:?}");
        assert!(outcome.stderr.contains("config example"), "{outcome:?}");
    });
}

#[test]
fn the_users_file_is_read_without_a_listener_or_an_agent() {
    block_on(async {
        let stage = Stage::with(ONE);
        fs::create_dir(stage.path("acp-relay")).unwrap();
        fs::rename(stage.file(), stage.path("acp-relay/acp-relay.toml")).unwrap();
        let mut serve = command(&["serve"]);
        serve.env("XDG_CONFIG_HOME", stage.dir.path());
        let mut serve = Program::of(serve);
        let caller = Caller::to(&serve.address().await);
        assert_eq!(Client::open(&caller, "/acp").await.words(), ["of the file"]);
        // It is not, with a listener or an agent on the command line.
        let mut serve = command(&["serve", "--listen", "tcp://127.0.0.1:0"]);
        serve.env("XDG_CONFIG_HOME", stage.dir.path());
        assert_eq!(run_command(serve, "").await.code, Some(64));
    });
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    block_on(async {
        let stage = Stage::with(&format!("{ONE}\n[limits]\nconnections = 0\n"));
        // The environment names another file, which is invalid.
        let mut serve = stage.command(&[]);
        serve.env("ACP_RELAY_CONFIG", "/no/such/file");
        let outcome = run_command(serve, "").await;
        assert_eq!(outcome.code, Some(78), "{outcome:?}");

        stage.write(&format!("{ONE}\n[limits]\nconnections = 1\n"));
        let agent = stage.path("agent");
        let words = [
            "--listen",
            "ws://127.0.0.1:0",
            "--",
            agent.to_str().unwrap(),
            "of the line",
        ];
        let mut serve = Program::of(stage.command(&words));
        let address = serve.address().await;
        assert!(address.starts_with("ws://"), "{address}");
        let mut client = Program::start(&["connect", &address]);
        ask(&mut client, 1).await;
        assert_eq!(client.json().await["result"]["words"][0], "of the line");
        // The file's limit applies where no flag sets it.
        let mut other = Program::start(&["connect", &address]);
        ask(&mut other, 1).await;
        assert_eq!(other.json().await["error"]["code"], -32053);
    });
}

#[test]
fn an_empty_variable_is_ignored() {
    block_on(async {
        let stage = Stage::with(ONE);
        let mut serve = stage.command(&[]);
        let variables = [
            "CONFIG",
            "LISTEN",
            "STORE",
            "ADMIN",
            "RECORD",
            "TOKEN_FILE",
            "TLS_CERT",
            "TLS_KEY",
            "LOG",
            "LOG_FORMAT",
        ];
        for name in variables {
            serve.env(format!("ACP_RELAY_{name}"), "");
        }
        Program::of(serve).address().await;
    });
}

#[test]
fn paths_are_relative_to_the_folder_of_the_file() {
    block_on(async {
        let stage = Stage::with(&format!(
            "{ONE}[admin]\nlisten = \"unix:admin.sock\"\n[record]\ndir = \"tapes\"\n"
        ));
        let file = stage.file();
        let name = file.file_name().unwrap().to_str().unwrap();
        for name in [
            name.to_owned(),
            format!("./{name}"),
            file.display().to_string(),
        ] {
            let mut check = command(&["config", "check", &name]);
            check.current_dir(file.parent().unwrap());
            let outcome = run_command(check, "").await;
            assert_eq!(outcome.code, Some(0), "{name}: {outcome:?}");
        }
    });
}

#[test]
fn a_file_that_others_may_write_to_is_refused() {
    block_on(async {
        let stage = Stage::with(ONE);
        for mode in [0o620, 0o602] {
            fs::set_permissions(stage.file(), fs::Permissions::from_mode(mode)).unwrap();
            let outcome = run_command(stage.command(&[]), "").await;
            assert_eq!(outcome.code, Some(77), "{outcome:?}");
            assert!(outcome.stderr.contains("chmod go-w"), "{outcome:?}");
        }
    });
}

#[test]
fn agents_do_not_inherit_the_secrets_of_the_relay() {
    block_on(async {
        let stage = Stage::with(ONE);
        let agent = stage.path("agent");
        let listen = ["serve", "--listen", "http://127.0.0.1:0", "--"];
        let words = [&listen[..], &[agent.to_str().unwrap()]].concat();
        for mut serve in [stage.command(&[]), command(&words)] {
            serve
                .env("ACP_RELAY_BEARER", "b")
                .env("ACP_RELAY_TOKEN", "t")
                .env("SAY", "said");
            let mut serve = Program::of(serve);
            let caller = Caller::to(&serve.address().await);
            let client = Client::open(&caller, "/acp").await;
            assert_eq!(client.about["secret"], "");
            assert_eq!(client.about["say"], "said");
        }
    });
}

#[test]
fn an_agent_that_is_not_installed_is_reported_with_the_remedy() {
    block_on(async {
        let stage =
            Stage::with("[agents.g]\nprofile = \"gemini\"\n[agents.c]\nprofile = \"cline\"\n");
        let mut serve = stage.command(&[]);
        serve.env("PATH", stage.dir.path());
        let outcome = run_command(serve, "").await;
        assert_eq!(outcome.code, Some(69), "{outcome:?}");
        for part in [
            "agents.g: exec:'gemini --acp'",
            "`gemini` is not installed",
            "npm i -g @google/gemini-cli",
            "npm i -g cline",
        ] {
            let part = part.replace("'", "");
            assert!(
                outcome.stderr.contains(&part),
                "`{part}` is not in {outcome:?}"
            );
        }
        let mut serve = command(&["serve", "--profile", "gemini"]);
        serve.env("PATH", stage.dir.path());
        let outcome = run_command(serve, "").await;
        assert_eq!(outcome.code, Some(69), "{outcome:?}");
        assert!(
            outcome.stderr.contains("npm i -g @google/gemini-cli"),
            "{outcome:?}"
        );
    });
}

#[test]
fn dev_null_means_no_configuration_file() {
    block_on(async {
        let outcome = run_command(command(&["serve", "--config", "/dev/null"]), "").await;
        assert_eq!(outcome.code, Some(64), "{outcome:?}");
        assert!(outcome.stderr.contains("there is no agent"), "{outcome:?}");
        let mut serve = Program::start(&["serve", "--config", "/dev/null", "--", "cat"]);
        assert!(serve.address().await.starts_with("ws://127.0.0.1:"));
        // An endless file is not read to its end.
        let outcome = run_command(command(&["config", "check", "/dev/zero"]), "").await;
        assert_eq!(outcome.code, Some(66), "{outcome:?}");
        assert!(outcome.stderr.contains("longer than 1 MiB"), "{outcome:?}");
    });
}

#[test]
fn socket_paths_are_relative_to_the_file() {
    block_on(async {
        let stage = Stage::with(
            r#"
[agents.one]
command = ["AGENT"]
[[listeners]]
endpoint = "unix:here.sock"
"#,
        );
        let mut serve = stage.command(&[]);
        serve.current_dir("/");
        let mut serve = Program::of(serve);
        let path = stage.path("here.sock");
        assert_eq!(serve.address().await, format!("unix:{}", path.display()));
    });
}
