//! A mapping table as data: one file of `mappings/`, and its parser.
//!
//! `mappings/README.md` specifies the language. `validate` checks a table, `program` compiles it.

mod fault;
mod operations;
mod parser;
mod read;
mod rows;
mod schema;
mod sides;
mod types;
mod way;

pub use fault::{TableFault, TableFaults};
pub(super) use fault::{line_of, nearest};
pub use operations::{Action, Converter};
pub use schema::schema;
pub(super) use types::PROMPTING;
pub use types::{
    Case, Clue, Conversion, Each, Emit, Example, Expect, Fill, FixedAnswer, Guard, Jsonrpc,
    KindChange, Literal, Loss, MessageFilter, MethodPair, NamedShape, NamedSlot, OnFailure, Recall,
    Rest, Row, Rule, Selector, Slot, SlotScope, Table,
};
pub use way::Way;
