//! A mapping table as data: one file of `mappings/`, and how it is read.
//!
//! `mappings/README.md` specifies the language. The types declare it: serde reads them, the JSON
//! Schema follows from them (`schema`), and `check` compares a file with that schema and reports all
//! faults. `document` reads JSON or TOML and knows where each value is, `short` expands short forms to
//! rules. `validate` checks a table as a whole, `program` compiles it.

mod case;
mod check;
mod document;
mod fault;
mod fault_list;
mod forms;
mod operations;
mod read;
mod row;
mod schema;
mod short;
mod types;
mod way;

pub use case::{Case, Emit, ErrorObject, Expect, FixedAnswer, Guard, Rest, When};
pub(super) use document::Document;
pub use fault::{TableFault, TableFaults};
pub(super) use fault_list::FaultList;
pub use forms::{List, Literal};
pub use operations::{Action, Converter};
pub use read::{content, fault_at};
pub use row::{Derive, Each, Pairs, Recall, Row};
pub use schema::schema;
pub(super) use types::PROMPTING;
pub use types::{
    Clue, IdKind, Jsonrpc, KindChange, Loss, MessageFilter, MethodPair, OnFailure, Params, Rule,
    Selector, Slot, SlotScope, Table,
};
pub use way::Way;
