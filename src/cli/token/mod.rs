//! `acp-relay token`, and the store of tokens.
//!
//! `command` is the command line; `add` and `list` are subcommands; `store` has the files that they
//! and the listeners read and write. `auth` says what a token allows, `state` which files are safe.
//!
//! # Why
//!
//! **There are two files.** `tokens` has only digests, so that its reader, in a backup, learns no
//! token. `token` has the user's own in clear: `connect` of the same user has to find it there, and
//! `token show` to print it. It gives no more access than being that user, who can read the memory
//! of the relay as well.

mod add;
mod command;
mod list;
mod store;
mod time;

pub(super) use command::{TokenArgs, run};
pub(super) use store::{Stamp, Store};
