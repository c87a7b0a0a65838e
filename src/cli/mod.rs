//! The program: its command line, its subcommands, and how it starts and stops.
//!
//! Each subcommand is one file or directory: `serve`, `connect`, `try_agent`, `install`, `doctor`, `check`,
//! `dialect` (also `translate`), `inspect`, `replay` (also `test` and `bisect`), `token`, `config`, `agents`, `status` (also
//! `health`), `top`, `demo`, `manual` (`help`), `assets`, `over_ssh`, and `shell` for completions and manual
//! pages. Besides:
//!
//! - `command_line` parses the arguments and dispatches; `common` is what `serve` and `connect`
//!   share; `target` finds the agent that a command line names, and `joined` keeps remote ones;
//!   `endpoints`, `limits`, `listeners`, `policy`, `remote`, `record`, `dialect_options`,
//!   `framing`, `traces`, `agent_connect`, `examples` and `short_help` are options and help;
//!   `features` has the error about those that a build is without; `exit` has the exit codes, and
//!   prints the error of a subcommand that fails.
//! - `conversation` runs one conversation; `admission` authenticates the clients of `serve`;
//!   `admin` serves monitoring, `status_text` formats it, and `http` is the HTTP server of the admin
//!   listener and of `inspect open`.
//! - `telemetry` starts the log, `stderr` writes it, `rate_limit` limits it,
//!   `log_redaction` removes secrets from it, and `stderr_capture` records the stderr of agents.
//! - `processes`, `memory`, `runtime`, `shutdown` and `state` are about the process: its children,
//!   allocator, threads, signals and files; `random` is the system's random numbers, `bounded` reads files of a bounded length,
//!   `snippets` shows faults in files, `announcement` records for other programs of the user where relays listen. `console` is
//!   stdin and stdout of the subcommands that carry no conversation, `progress` shows how far they
//!   are, `local_time` formats the times of this machine's zone, and `browser` starts the browser.
//! - `rpc_client` is the ACP client of `try` and the demo, and `probe` asks agents by `try`; `junit` and
//!   `inputs` belong to the subcommands that check recordings; `recordings` finds those that are given
//!   by name.

mod admin;
mod admission;
#[cfg(feature = "agent-connect")]
mod agent_connect;
mod agents;
mod announcement;
mod assets;
mod bounded;
mod check;
#[cfg(feature = "cluster")]
mod cluster;
mod command_line;
mod common;
mod config;
mod connect;
mod console;
mod conversation;
mod demo;
mod dialect;
mod dialect_options;
mod doctor;
mod endpoints;
mod examples;
mod exit;
mod features;
mod framing;
mod http;
mod inputs;
mod inspect;
mod install;
mod joined;
mod junit;
mod limits;
mod link_options;
mod listeners;
mod local_time;
mod log_redaction;
mod login;
mod manual;
mod memory;
#[cfg(not(feature = "agent-connect"))]
mod no_agent_connect;
mod over_ssh;
mod policy;
mod probe;
mod processes;
mod progress;
mod random;
mod rate_limit;
mod record;
mod recordings;
mod remote;
mod renamed;
mod replace_file;
mod replay;
mod rpc_client;
mod runtime;
mod serve;
mod shell;
mod short_help;
mod shutdown;
mod snippets;
mod ssh_install;
mod state;
mod status;
mod status_text;
mod stderr;
mod stderr_capture;
mod target;
mod telemetry;
mod text;
mod token;
mod top;
mod traces;
mod try_agent;
mod variant;

#[cfg(not(feature = "agent-connect"))]
use no_agent_connect as agent_connect;

pub use admission::guarded;
pub use command_line::{command, run};
pub use config::faults as configuration_faults;
pub use conversation::{StderrTargets, agent_hold, restartable};
