//! `acp-relay dialect …` and `acp-relay translate`: work with mapping tables.
//!
//! One file per subcommand: [`mod@list`] the tables, [`mod@show`] one in two columns, [`mod@check`]
//! files, print the schema of the format, [`mod@test`] golden vectors and
//! [`mod@translate`] messages. All work on a set of [`mod@tables`]; `crate::dialect` translates.

mod check;
mod columns;
mod command;
mod explain;
mod list;
mod pipeline;
mod rows;
mod rule;
mod show;
mod tables;
mod test;
mod translate;

pub(super) use command::{Dialect, run};
pub(super) use pipeline::TranslatorPair;
pub(super) use rule::describe_rule;
pub(super) use tables::Tables;
pub(super) use translate::{Translate, run as translate};
