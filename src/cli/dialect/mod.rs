//! `acp-relay dialect …` and `acp-relay translate`: the mapping tables at a person's hand.
//!
//! One file for each subcommand: [`mod@list`] what is known, [`mod@show`] a table as two columns,
//! [`mod@check`] a file against the laws, [`mod@schema`] of the format, [`mod@test`] golden
//! vectors, and [`mod@translate`] messages. They all work on a [`mod@shelf`] of tables. Not here:
//! translating, which is `crate::dialect`'s, and choosing the dialect of a running conversation.

mod check;
mod columns;
mod command;
mod explain;
mod list;
mod passage;
mod rows;
mod schema;
mod shelf;
mod show;
mod test;
mod translate;

pub(super) use command::{Dialect, run};
pub(super) use passage::Pair;
pub(super) use shelf::{Shelf, Tables};
pub(super) use translate::{Translate, run as translate};
