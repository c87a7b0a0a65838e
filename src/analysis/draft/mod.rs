//! Drafts a mapping table, by a recording of the agent.
//!
//! `deviations` reads the recording, `guess` compares what is strange with ACP, and `table` writes the
//! table with the strings of `toml_text`.

mod deviations;
mod guess;
mod table;
mod toml_text;

pub use deviations::{Deviations, read};
pub use table::{Drafted, write};
