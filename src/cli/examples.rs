//! The examples in `--help` of the subcommands.
//!
//! A test parses each line that begins with the program's name as a command line. Some subcommands
//! keep their examples in their own files.

use super::{check, endpoints};

/// Of `dialect`.
pub(super) const DIALECT: &str = "\
Examples:
  acp-relay dialect list
  acp-relay dialect show copilot-overseer
      One table as two columns: what the peer sends, and what it means.
  acp-relay dialect check mine.json
      All faults of a table of your own; `acp-relay connect --table mine.json …` uses it.";

/// Of `inspect`.
pub(super) const INSPECT: &str = "\
Examples:
  acp-relay inspect
      The recordings of `--record` without a folder; `inspect ls DIR` lists others.
  acp-relay inspect open recordings
      All recordings of a folder in a browser, also those still being written.
  acp-relay inspect show @last
      The newest as text; `acp-relay inspect show --help` explains filters. @-2 is the one before it,
      and the beginning of a file's name or of an id names any other.
  acp-relay inspect lint recordings/talk.acpr
      Where the protocol is violated; exit code 1 if it is.
  acp-relay inspect export recordings/talk.acpr --to md";

/// Of `replay`.
pub(super) const REPLAY: &str = "\
Examples:
  acp-relay replay agent talk.acpr
      As the agent's command in an editor: the recorded agent, without a model.
  acp-relay replay client talk.acpr -- goose acp
      Exit code 1 when the agent answers differently than in the recording. For many recordings, and
      for CI, there is `acp-relay test`.";

/// Of `config`.
pub(super) const CONFIG: &str = "\
Examples:
  acp-relay config schema > acp-relay.schema.json
      For editors that complete and check TOML.
  acp-relay config example
      A file with every option, explained in comments.
  acp-relay config check team.toml
      All faults, each with its line and its remedy, and what is missing on this machine.
  acp-relay config show --config team.toml
      The effective configuration, and where each value is from: a line, a variable, a flag.";

/// Of `agents`.
pub(super) const AGENTS: &str = "\
Examples:
  acp-relay agents list
  acp-relay serve --profile claude
      One of them, by its name.
  acp-relay agents import registry.json
      Those of a file in the format of the ACP registry, too; nothing is downloaded.";

/// Of `status`, `health` and `top`.
pub(super) const WATCH: &str = "\
Examples:
  acp-relay serve --admin 127.0.0.1:9464 -- goose acp
      This one has an admin listener, and the commands below find a relay of yours by themselves.
  acp-relay status --json
  acp-relay health
      Exit code 0 while it accepts clients.
  acp-relay top";

/// Of `demo`.
pub(super) const DEMO: &str = "\
Examples:
  acp-relay demo
      The client allows what the agent asks for.
  acp-relay demo --deny
      The client rejects it.
  acp-relay demo --open
      Then the viewer shows the recorded conversation in a browser.";

/// Of `serve`, without the endpoints.
pub(super) const SERVE: &str = "\
Examples:
  acp-relay serve --listen ws://127.0.0.1:9000 -- goose acp
      One agent process for each client. Port 0 chooses a free port.
  acp-relay serve --listen unix:/tmp/acp.sock --profile claude
      A well-known agent, at a socket for your own programs only.
  acp-relay serve --listen https://0.0.0.0:9443 --tls-cert cert.pem --tls-key key.pem -- goose acp
      For other machines: ACP's remote transport and WebSockets, with tokens of `acp-relay token`.
  acp-relay serve --config team.toml --admin 127.0.0.1:9464
      Several agents by name, and metrics for Prometheus; `acp-relay config example` prints a file.
  acp-relay serve --record recordings --on-disconnect detach -- goose acp
      Every conversation in a file; an agent whose client is disconnected waits for it.";

/// Of `connect`, without the endpoints.
pub(super) const CONNECT: &str = "\
Examples, for the agent's command in the settings of an editor:
  acp-relay connect ssh://devbox/goose
      An agent on a machine that ssh reaches, with acp-relay there.
  acp-relay connect ws://127.0.0.1:9000
      One behind `acp-relay serve`, on this machine or, remotely, through ssh -L.
  acp-relay connect --bearer-file alice.token https://agents.example/agents/goose/acp
      One on a server, by its name.
  acp-relay connect --map /home/me/app=/srv/app ssh://me@host.example/goose
      One where the folder has another path.
  acp-relay connect --record -- goose acp
      One on this machine, with the conversation recorded; `acp-relay inspect` lists recordings.";

const CHECK: &str = "\
Examples:
  acp-relay check capture.jsonl recordings/talk.acpr
  acp-relay check --fail-on unrepaired --json capture.jsonl";

/// Of `serve`.
pub(super) fn serve() -> String {
    format!("{}\n\n{SERVE}", endpoints::help())
}

/// Of `connect`.
pub(super) fn connect() -> String {
    format!("{}\n\n{CONNECT}", endpoints::help())
}

/// Of `check`.
pub(super) fn check() -> String {
    format!("{}\n\n{CHECK}", check::HELP)
}
