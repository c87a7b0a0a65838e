//! Translates the messages of a file from one dialect to another, and explains what was changed.

mod explain;
mod pipeline;

pub use explain::{Explanation, note_text};
pub use pipeline::{Pipeline, PipelineOutput};
