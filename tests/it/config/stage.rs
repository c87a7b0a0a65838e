//! A server with its own configuration file, and agents that report how they were started.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::http::{Caller, Events, INITIALIZE};
use crate::support::program::{Program, command};

/// An agent that answers each request with its arguments, folder, process id and one variable. It
/// answers `slow` once a file called `go` exists.
pub(crate) const AGENT: &str = r#"#!/bin/sh
words=
for word; do words="$words\"$word\","; done
while read -r line; do
    id=${line#*\"id\":}; id=${id%%,*}
    case $line in *slow*) echo "{\"jsonrpc\":\"2.0\",\"method\":\"begun\"}"
        while ! [ -e go ]; do sleep 0.01; done;; esac
    case $line in *'"id"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"words\":[${words%,}],\"dir\":\"$PWD\",\"pid\":$$,\"say\":\"$SAY\",\"secret\":\"$ACP_RELAY_BEARER$ACP_RELAY_TOKEN\"}}";; esac
done
"#;

/// A folder with a configuration file and the agent's program.
pub(crate) struct Stage {
    pub(crate) dir: TempDir,
}

/// A client over HTTP.
pub(crate) struct Client {
    pub(crate) caller: Caller,
    /// Its path.
    pub(crate) path: String,
    /// The id of its connection.
    pub(crate) id: String,
    /// The agent's first result.
    pub(crate) about: Value,
}

impl Stage {
    /// With this configuration, in which `AGENT` stands for the agent's program.
    pub(crate) fn with(config: &str) -> Self {
        let stage = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let program = stage.path("agent");
        fs::write(&program, AGENT).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        stage.write(config);
        stage
    }

    /// Replaces the configuration.
    pub(crate) fn write(&self, config: &str) {
        let program = self.path("agent");
        let config = config.replace("AGENT", program.to_str().unwrap());
        fs::write(self.file(), config).unwrap();
        fs::set_permissions(self.file(), fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.path("acp-relay.toml")
    }

    /// `serve` with this file and these arguments.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let file = self.file();
        let mut all = vec!["serve", "--config", file.to_str().unwrap()];
        all.extend(args);
        command(&all)
    }

    pub(crate) fn serve(&self) -> Program {
        Program::of(self.command(&[]))
    }

    /// Starts it, and returns a caller of its first listener.
    pub(crate) async fn start(&self) -> (Program, Caller) {
        let mut serve = self.serve();
        let caller = Caller::to(&serve.address().await);
        (serve, caller)
    }
}

impl Client {
    /// A client that its agent has answered.
    pub(crate) async fn open(caller: &Caller, path: &str) -> Self {
        let reply = caller.ask("POST", path, &[JSON], INITIALIZE).await;
        assert_eq!(reply.status.as_u16(), 200, "{}", reply.body);
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        Self {
            caller: caller.clone(),
            path: path.to_owned(),
            id: reply.fields["acp-connection-id"]
                .to_str()
                .unwrap()
                .to_owned(),
            about: answer["result"].clone(),
        }
    }

    /// Sends a message.
    pub(crate) async fn post(&self, message: &str) -> u16 {
        let fields = [JSON, ("acp-connection-id", &self.id)];
        let reply = self.caller.ask("POST", &self.path, &fields, message).await;
        reply.status.as_u16()
    }

    /// Its stream of events.
    pub(crate) async fn events(&self) -> Events {
        let fields = [("acp-connection-id", &*self.id)];
        self.caller.events(&fields).await
    }

    /// Whether its agent runs, which has returned its process id.
    pub(crate) fn agent_runs(&self) -> bool {
        fs::exists(format!("/proc/{}", self.about["pid"])).unwrap()
    }

    /// The arguments of its agent.
    pub(crate) fn words(&self) -> Vec<&str> {
        let words = self.about["words"].as_array().unwrap();
        words.iter().map(|word| word.as_str().unwrap()).collect()
    }
}

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

/// Has a server read its file again.
pub(crate) async fn reload(serve: &mut Program) {
    serve.signal(Signal::HUP);
    while !serve.complaint().await.unwrap().ends_with("was reloaded") {}
}

/// Ends a server.
pub(crate) async fn stop(mut serve: Program) {
    serve.signal(Signal::TERM);
    assert_eq!(serve.exit().await.code(), Some(0));
}

/// Sends a request of this id by a program.
pub(crate) async fn ask(client: &mut Program, id: u32) {
    let ask = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"a\"}}\n");
    client.write(&ask).await;
}
