//! `acp-relay dialect new`: drafts a mapping table, by a recording of the agent.
//!
//! [`mod@deviations`] reads the recording, [`mod@guess`] compares what is strange with ACP, [`mod@draft`]
//! writes the table with the strings of [`mod@toml_text`], and [`mod@command`] its file.

mod command;
mod deviations;
mod draft;
mod guess;
mod toml_text;

pub(super) use command::{New, run};
