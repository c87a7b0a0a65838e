//! `acp-relay inspect export`: writes conversations in formats of other programs, and for people.
//!
//! Each format is a [`Format`].

mod command;
mod format;
mod json;
mod text;

pub(super) use command::{Export, run};
use format::{Exported, Format};
