//! `acp-relay token`, and the store of tokens.
//!
//! `command` is the command line, and `store` has the files that it and the listeners read and write.
//! `auth` says what a token allows, `state` which files are safe.
//!
//! # Why
//!
//! **There are two files.** `tokens` has only digests, so that its reader, in a backup, learns no
//! token. `token` has the user's own in clear: `connect` of the same user has to find it there, and
//! `token show` to print it. It gives no more access than being that user, who can read the memory
//! of the relay as well.

mod command;
mod store;

pub(super) use command::{TokenArgs, run};
pub(super) use store::{Stamp, Store};
