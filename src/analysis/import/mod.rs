//! Reads what other programs have captured of a conversation, and makes recordings of it.

mod capture;
mod encode;
mod formats;

pub use capture::{Capture, Item};
pub use encode::{ImportedRecording, encode, import};
