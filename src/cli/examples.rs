//! What `--help` of a subcommand teaches by: its examples.
//!
//! A test reads each line that begins with the program's name as a command line. Not here: those of
//! the program itself (see `cli`), and of subcommands that keep theirs beside what they do.

use super::{check, endpoints};

/// Of `dialect`.
pub(super) const DIALECT: &str = "\
Examples:
  acp-relay dialect list
  acp-relay dialect show copilot-overseer
      One table as two columns: what the peer says, and what it means.
  acp-relay dialect check mine.json
      All faults of a table of your own; `acp-relay connect --table mine.json …` uses it.";

/// Of `inspect`.
pub(super) const INSPECT: &str = "\
Examples:
  acp-relay inspect open tapes
      All recordings of a folder in a browser, also while they are written.
  acp-relay inspect show tapes/talk.acpr
      One of them as text; `acp-relay inspect show --help` explains filters.
  acp-relay inspect lint tapes/talk.acpr
      Where the protocol is broken; exit code 1 when it is.
  acp-relay inspect export tapes/talk.acpr --to md";

/// Of `replay`.
pub(super) const REPLAY: &str = "\
Examples:
  acp-relay replay agent talk.acpr
      As the agent's command in an editor: the recorded agent, without a model.
  acp-relay replay client talk.acpr --junit report.xml -- goose acp
      In CI: exit code 1 when the agent answers otherwise than it did.";

/// Of `config`.
pub(super) const CONFIG: &str = "\
Examples:
  acp-relay config example
      A file that says all there is to say; its comments explain it.
  acp-relay config check team.toml
      All faults, each with its line and what to do, and what this machine lacks.
  acp-relay config show --config team.toml
      What is in force, and who has said so: a line, a variable, a flag.";

/// Of `agents`.
pub(super) const AGENTS: &str = "\
Examples:
  acp-relay agents list
  acp-relay serve --profile claude
      One of them, by its name.";

/// Of `status`, `health` and `top`.
pub(super) const WATCH: &str = "\
Examples:
  acp-relay serve --admin 127.0.0.1:9464 -- goose acp
      Has to run, with an admin listener; a relay of yours is found by itself.
  acp-relay status --json
  acp-relay health
      Exit code 0 while it takes clients.
  acp-relay top";

/// Of `demo`.
pub(super) const DEMO: &str = "\
Examples:
  acp-relay demo
      The client grants what the agent asks for.
  acp-relay demo --deny
      And refuses it.";

const SERVE: &str = "\
Examples:
  acp-relay serve --listen ws://127.0.0.1:9000 -- goose acp
      An agent process for each client. Port 0 finds one that is free.
  acp-relay serve --listen unix:/tmp/acp.sock --profile claude
      A well-known agent, at a socket for your own programs alone.
  acp-relay serve --listen https://0.0.0.0:9443 --tls-cert cert.pem --tls-key key.pem -- goose acp
      For other machines: ACP's remote transport and WebSockets, with tokens of `acp-relay token`.
  acp-relay serve --config team.toml --admin 127.0.0.1:9464
      Several agents by name, and figures for Prometheus; `acp-relay config example` prints a file.
  acp-relay serve --record tapes --on-disconnect detach -- goose acp
      Every conversation in a file; an agent whose client is cut off waits for it.";

const CONNECT: &str = "\
Examples, for the agent's command in the settings of an editor:
  acp-relay connect ws://127.0.0.1:9000
      An agent behind `acp-relay serve`, here or, as a remote agent, through ssh -L.
  acp-relay connect --bearer-file alice.token https://agents.example/agents/goose/acp
      One on a server, by its name.
  acp-relay connect --map /home/me/app=/srv/app -- ssh host.example acp-relay connect -- goose acp
      One behind ssh, where the folder is called otherwise.
  acp-relay connect --record tapes -- goose acp
      One on this machine, and what it was told and said in a file.";

const CHECK: &str = "\
Examples:
  acp-relay check capture.jsonl tapes/talk.acpr
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
