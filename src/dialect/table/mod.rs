//! A mapping table as data: one file of `mappings/`, and its parser.
//!
//! `mappings/README.md` specifies the language. `validate` checks a table, `program` compiles it.

mod actions;
mod fault;
mod loss;
mod parser;
mod read;
mod rows;
mod sides;
mod types;

pub use actions::Action;
pub use fault::{TableFault, TableFaults};
pub(super) use fault::{line_of, nearest};
pub use loss::Loss;
pub use read::FORMAT;
pub use types::{
    Case, Clue, Conversion, Each, Emit, Example, Expect, Fill, FixedAnswer, Guard, Jsonrpc,
    KindChange, Literal, MessageFilter, MethodPair, NamedShape, NamedSlot, OnFailure, Recall, Rest,
    Row, Rule, Selector, Slot, SlotScope, Table, Way,
};
