//! ACP as its schemas publish it, and the check of messages against them.
//!
//! `acp-v1.schema.json` is the stable v1 schema, which is canonical ACP here, as the npm package
//! `@agentclientprotocol/sdk` 2.4.0 publishes it (Apache-2.0), every byte; a test compares it with
//! the types of the crate `agent-client-protocol-schema`. `acp-v2-draft.schema.json` is the draft of
//! v2 in the same package; each side is checked against the version that its `initialize` shows.
//! Their top level accepts any object through the extension variants,
//! so a message is checked against the types of its own method and side, and a union against the
//! one variant that its discriminator names.
//!
//! The check builds a tree of every message. It is for offline use, and no message of a running
//! relay passes through it.

mod checker;
mod descriptions;
mod methods;
mod phrase;
mod schema;
mod shape;
mod union;
mod validate;
mod violation;

pub use checker::{CheckedMessage, Checker};
pub use schema::Schema;
pub use shape::{Shape, ShapeMember};
pub use violation::{Consequence, Violation, ViolationKind};
