//! The filter language that selects events, shared by everything that reads recordings.
//!
//! ```text
//! method:session/update and session:ab12 and dur>2s and dir:< and text:"foo" and lint:*
//! ```
//!
//! [`Filter`] is parsed from it and matches an event by its contents and by [`DerivedFields`] that
//! only a reader of the whole recording knows. Terms are `field:value` for texts, where `*` stands
//! for anything, and `field>value`, `<`, `>=`, `<=`, `=` for quantities with a unit; they are
//! joined by `and` (which may be omitted), `or`, `not` and parentheses. A single word, also the name
//! of a field, or a text in quotes, is short for `text:…`. [`Field`] lists the fields. The viewer's
//! page implements the same language, for files that no server reads (`viewer/page/filter.js`);
//! `tests/vectors/inspect/filter.json` tests both.

#![warn(clippy::indexing_slicing)]

mod eval;
mod field;
mod parse;

pub use eval::{DerivedFields, Filter};
pub use field::Field;
pub use parse::FilterError;
