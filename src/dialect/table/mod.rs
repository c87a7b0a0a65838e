//! A mapping table as data: one file of `mappings/`, and how it is read.
//!
//! `mappings/README.md` specifies the language. `schema_check` compares a file with its JSON Schema
//! and reports all faults; serde makes the types from what is left, with the short forms of
//! `forms`. `validate` checks a table as a whole, `program` compiles it.

mod case;
mod fault;
mod forms;
mod operations;
mod read;
mod schema;
mod schema_check;
mod sides;
mod types;
mod way;

pub use case::{
    Case, Conversion, Each, Emit, Expect, Fill, FixedAnswer, Guard, Literal, Recall, Rest, Row,
    Values, When,
};
pub(super) use fault::{FaultList, line_of, nearest};
pub use fault::{TableFault, TableFaults};
pub use operations::{Action, Converter};
pub use schema::schema;
pub(super) use types::PROMPTING;
pub use types::{
    Clue, Example, Jsonrpc, KindChange, Loss, MessageFilter, MethodPair, OnFailure, Rule, Selector,
    Shape, Slot, SlotScope, Table,
};
pub use way::Way;
