//! Faults of a protocol's conversation, each under an id that stays.
//!
//! [`RULES`] is what is looked for; [`Linter`] is shown one event after the other, so that it can
//! follow a recording that grows. What the schema says comes from `canon`; who answered whom and
//! what may be said when is here. Not here: damage of the file (see `verify`), what is printed.

mod catalogue;
mod linter;
mod requests;
mod sessions;
mod spelling;

pub use catalogue::{Finding, RULES, Rule, Weight};
pub use linter::Linter;
