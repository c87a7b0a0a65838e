//! `acp-relay token`, and where tokens are kept.
//!
//! `command` is the command line, `add`, `list` and what it holds itself the subcommands; `store` is
//! what they and the listeners read and write. Not here: what a token is good for (see `guard`), and
//! which files are safe (see `state`).
//!
//! # Why
//!
//! **There are two files.** `tokens` holds digests alone, so that who reads it, in a backup, learns
//! no token. `token` is the user's own and holds it as it is: `connect` of the same user has to find
//! it there, and `token show` to print it. It is worth no more than being that user, who can read
//! the memory of the relay as well.

mod add;
mod command;
mod list;
mod store;
mod time;

pub(super) use command::{TokenArgs, run};
pub(super) use store::{Stamp, Store};
