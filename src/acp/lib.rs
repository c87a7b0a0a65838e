//! ACP as its schemas publish it, and the check of messages against them. For authors of agents and
//! clients who want to know what a message does wrong.
//!
//! ```
//! use acp::Checker;
//! use jsonrpc::{Frame, Side};
//!
//! let update = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":
//!     {"sessionUpdate":"tool_call","toolCallId":"1","title":"Send","kind":"channel"}}}"#;
//! let checked = Checker::new(false).check(Some(Side::Agent), &Frame::from(update));
//! assert_eq!(checked.violations[0].pointer, "/params/update/kind");
//! ```
//!
//! `acp-v1.schema.json` is the stable v1 schema, which is canonical ACP here, and
//! `acp-v2-draft.schema.json` the draft of v2; a test makes both from the types of the crate
//! `agent-client-protocol-schema` (Apache-2.0). Each side is checked against the version that its
//! `initialize` shows.
//! A message is checked against the types of its own method and side, and a union against the one
//! variant that its discriminator names.
//!
//! The check builds a tree of every message. It is for offline use, and no message of a running
//! relay passes through it.

#![warn(clippy::indexing_slicing)]

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
