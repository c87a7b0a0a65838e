//! A mapping table as data: one file of `mappings/`, and how it is read.
//!
//! `mappings/README.md` specifies the language. The types declare it: serde reads them, the JSON
//! Schema follows from them (`schema`), and `check` compares a file with that schema and reports all
//! faults. `validate` checks a table as a whole, `program` compiles it.

mod case;
mod check;
mod fault;
mod forms;
mod operations;
mod read;
mod row;
mod schema;
mod types;
mod way;

pub use case::{Case, Emit, ErrorObject, Expect, FixedAnswer, Guard, Rest, When};
pub(super) use fault::FaultList;
pub(crate) use fault::place_of;
pub use fault::{TableFault, TableFaults};
pub use forms::{List, Literal};
pub use operations::{Action, Converter};
pub use row::{Derive, Each, Pairs, Recall, Row};
pub use schema::schema;
pub(super) use types::PROMPTING;
pub use types::{
    Clue, IdKind, Jsonrpc, KindChange, Loss, MessageFilter, MethodPair, OnFailure, Params, Rule,
    Selector, Slot, SlotScope, Table,
};
pub use way::Way;
