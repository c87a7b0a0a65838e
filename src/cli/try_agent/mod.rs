//! `acp-relay try`: a small client at the terminal, for an agent or a remote relay without an editor.
//!
//! The client and the relay's conversation with the agent run in one process, joined by a pipe in
//! memory; messages pass the same code as between an editor and an agent.
//!
//! `command` is the command line and starts both; `session` is what the client does, also that of
//! `demo`; `screen` shows it, and `report` what the relay did to the messages.

mod command;
mod report;
mod screen;
mod session;

pub(super) use command::{EXAMPLES, Try, run};
pub(super) use session::{Frontend, Permission, Session, Shown};
