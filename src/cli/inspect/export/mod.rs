//! `acp-relay inspect export`: conversations for other programs, and for people without this one.
//!
//! One file for each form, all of them a [`Form`]. What a form has no place for is counted and
//! said. Not here: the other direction (see `import`).

mod capture;
mod command;
mod devtools;
mod form;
mod har;
mod jsons;
mod markdown;
mod mermaid;
mod packet;
mod pcapng;

pub(super) use command::{Export, run};
use form::{Form, Said};
