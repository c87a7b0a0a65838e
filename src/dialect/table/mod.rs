//! A mapping table as data: what one file in `mappings/` says, and the reading of it.
//!
//! `mappings/README.md` specifies the language. Not here: what the laws forbid (see `law`), and
//! how a table is carried out (see `program`).

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
