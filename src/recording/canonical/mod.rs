//! What was said, whoever said it and when: two conversations in this form can be compared.
//!
//! Two runs of one conversation differ in ids, times, folders and in how an answer is cut into
//! chunks; nobody who compares them means that. [`Steps`] makes a conversation into [`Step`]s
//! without all of it: ids become names in the order of their first appearance ([`Names`], which
//! also makes the params of a single request comparable), runs of chunks become one step, times
//! are left out. [`compare()`] aligns two of them, lane by lane: what one side says within one
//! session is an order, what two sides or two sessions say at the same time is none.
//! Not here: what of a difference matters to a test (see replay), how it is printed.

mod compare;
mod names;
mod steps;

pub use compare::{Difference, Lane, compare};
pub use names::Names;
pub use steps::{Step, Steps, steps};
