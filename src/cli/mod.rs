//! The program: what its command line means, and how it starts and stops.
//!
//! One file, or one room, for each subcommand: `serve`, `connect`, `check`, `dialect` (also
//! `translate`), `inspect`, `replay` (also `bisect`), `token`, `config`, `agents`, `status` (also
//! `health`), `top`, `demo`, and `shell` for completions and manuals. Besides:
//!
//! - `cli` is the command line and chooses; `common` is what `serve` and `connect` share;
//!   `endpoints`, `limits`, `listeners`, `border`, `remote`, `record`, `tongues`, `traces`,
//!   `agent_connect` and `examples` are options and help; `exit` are the exit codes.
//! - `conversation` puts one conversation around the relay's loop; `door` is who may come to
//!   `serve`; `admin` tells how a relay is, `page` how that looks, `viewer` shows recordings in a
//!   browser, and `http` is the small server below both.
//! - `telemetry` starts the log, `stderr` writes it, `stint` and `seldom` bound it, `discretion`
//!   keeps secrets out of it, and `margin` does so for the stderr of agents in recordings.
//! - `processes`, `memory`, `runtime`, `shutdown` and `state` are about the process: what it leaves
//!   behind, its allocator, its threads, its signals, its files. `console` is stdin and stdout of
//!   subcommands that carry no conversation.
//! - `findings` and `repairs` are `check`'s, `junit` and `several` are for all that judge
//!   recordings.
//!
//! Not here: anything a conversation needs to know.

mod admin;
mod agent_connect;
mod agents;
mod border;
mod check;
mod cli;
mod common;
mod connect;
mod console;
mod config;
mod conversation;
mod demo;
mod dialect;
mod discretion;
mod door;
mod endpoints;
mod examples;
mod exit;
mod findings;
mod http;
mod inspect;
mod junit;
mod limits;
mod listeners;
mod margin;
mod memory;
mod page;
mod processes;
mod record;
mod remote;
mod repairs;
mod replay;
mod runtime;
mod seldom;
mod serve;
mod several;
mod shell;
mod shutdown;
mod state;
mod status;
mod stderr;
mod stint;
mod telemetry;
mod token;
mod tongues;
mod top;
mod traces;
mod viewer;

pub use cli::run;
pub use config::faults as configuration_faults;
