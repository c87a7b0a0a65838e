//! Reads what other programs have captured of a conversation.

mod capture;
mod formats;

pub use capture::{Capture, Item};
pub use formats::read;
