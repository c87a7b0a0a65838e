//! A mapping table as data: one file of `mappings/`, and its parser.
//!
//! `mappings/README.md` specifies the language. `validate` checks a table, `program` compiles it.

mod acts;
mod fault;
mod loss;
mod parts;
mod read;
mod rows;
mod types;
mod ways;

pub use acts::Action;
pub use fault::{Fault, Faults};
pub(super) use fault::{line_of, nearest};
pub use loss::Loss;
pub use read::FORMAT;
pub use types::{
    Answer, Case, Clue, Conversion, Each, Emit, Example, Expect, Failure, Fill, Guard, Jsonrpc,
    Kinds, Literal, Memory, Names, On, Per, Recall, Rest, Row, Rule, Selector, Shape, Slot, Table,
    Way,
};
