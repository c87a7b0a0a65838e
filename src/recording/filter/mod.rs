//! Which events are meant: one language for all who look at recordings.
//!
//! ```text
//! method:session/update and session:ab12 and dur>2s and dir:< and text:"foo" and lint:*
//! ```
//!
//! [`Filter`] is parsed from it and matches an event by what stands in it and by [`Facts`] that
//! only a reader of the whole recording knows. Terms are `field:value` for texts, where `*` stands
//! for anything, and `field>value`, `<`, `>=`, `<=`, `=` for quantities with a unit; they are
//! joined by `and` (which may be left out), `or`, `not` and parentheses. A word alone, or a text in
//! quotes, is short for `text:…`. The viewer's page has the same language, for files that no server
//! reads (`app/viewer/page/filter.js`); `tests/vectors/inspect/filter.json` holds both to it.
//! [`FIELDS`] lists them. Not here: who finds lint, who prints.

mod eval;
mod field;
mod glob;
mod parse;
mod scan;

pub use eval::{Facts, Filter};
pub use field::{FIELDS, Field};
pub use parse::Fault;
