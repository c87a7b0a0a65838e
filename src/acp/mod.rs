//! What is canonical: ACP v1 as its schema publishes it, and where a message departs from it.
//!
//! `acp-v1.schema.json` is the stable v1 schema as the npm package `@agentclientprotocol/sdk`
//! 2.4.0 publishes it (Apache-2.0), every byte; a test holds it against the types of the crate
//! `agent-client-protocol-schema`. Its top level accepts any object through the extension
//! variants, so a message is held against the types of its own method and side, and a union
//! against the one variant that its discriminator names.
//!
//! The room is for looking at conversations afterwards. It builds a tree of every message and is
//! never on a message's path. Not here: where the messages come from and how the findings are
//! printed (see `cli::check`), and what repairs them.

mod deviation;
mod hear;
mod methods;
mod pairs;
mod phrase;
mod remedies;
mod schema;
mod union;
mod walk;

pub use deviation::{Deviation, Kind, Weight, plain};
pub use hear::{Conversation, Role, Verdict};
pub use methods::methods;
pub use remedies::{Remedies, Remedy};
