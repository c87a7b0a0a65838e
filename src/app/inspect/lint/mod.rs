//! Faults of a protocol's conversation, each under an id that stays.
//!
//! [`catalogue`] lists what is looked for; [`Linter`] is shown one event after the other, so that
//! it can follow a recording that grows. What the schema says comes from `canon`; who answered
//! whom and what may be said when is here. Not here: damage of the file (see `inspect verify`).

mod catalogue;
mod command;
mod linter;
mod requests;
mod sessions;
mod spelling;

pub(super) use command::{Lint, run};
pub(super) use linter::Linter;
