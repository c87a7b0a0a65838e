//! `acp-relay dialect …` and `acp-relay translate`: work with mapping tables.
//!
//! [`mod@command`] lists the tables and prints the schema of the format, [`mod@show`] prints one in
//! two columns, [`mod@new`] drafts one, [`mod@check`] checks files, [`mod@test`] runs golden vectors and [`mod@translate`]
//! translates messages. All work on a set of [`mod@tables`]; `analysis` does the work.

mod check;
mod command;
mod new;
mod show;
mod tables;
mod test;
mod translate;

pub(super) use command::{Dialect, describe_rule, run};
pub(super) use tables::Tables;
pub(super) use translate::{Translate, run as translate};
