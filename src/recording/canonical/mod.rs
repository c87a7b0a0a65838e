//! The canonical form of conversations, in which two of them can be compared.
//!
//! Two runs of one conversation differ in ids, times, folders and in how an answer is cut into
//! chunks, which is irrelevant to a comparison. [`Steps`] turns a conversation into [`Step`]s
//! without them: ids become names in the order of their first appearance ([`NameTable`], which also
//! makes the params of a single request comparable), runs of chunks become one step, times are
//! dropped. [`compare()`] aligns two conversations sequence by sequence: the messages of one side
//! in one session are ordered, those of two sides or two sessions are not.

mod compare;
mod names;
mod steps;

pub use compare::{Difference, Pair, compare, side_by_side};
pub use names::NameTable;
pub use steps::{Step, Steps, steps};
