//! `acp-relay inspect export`: writes conversations in formats of other programs, and for people.
//!
//! One file for each format, all of them a [`Format`]. Messages that a format cannot represent are
//! counted and reported.

mod capture;
mod command;
mod devtools;
mod format;
mod har;
mod jsons;
mod markdown;
mod mermaid;
mod packet;
mod pcapng;

pub(super) use command::{Export, run};
use format::{Exported, Format};
