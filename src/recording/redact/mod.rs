//! Removes secrets from what is recorded, logged and reported.
//!
//! Secrets are replaced by a keyed hash, so that equal ones can be seen to be equal; forwarded bytes
//! are not touched. Two kinds of rule find them: by place (`places`: environment variables, headers,
//! authentication requests, pointers of the user) and by shape (`rules.txt`, judged by `scan`: keys
//! of known makers, tokens, PEM, random text after suggestive names). Everything else keeps its
//! bytes, except that a string with JSON in it is encoded anew around what was replaced. A secret
//! that is sent in pieces over several messages is recognised by the pieces before ([`Streams`]).

mod commands;
mod escapes;
mod forms;
mod headers;
mod inside;
mod messages;
mod named;
mod names;
mod piece;
mod places;
mod random;
mod redactor;
mod runs;
mod scan;
mod streams;
mod table;
mod tokens;
mod urls;
mod walk;
mod words;

pub(super) use escapes::begins_word;
pub use messages::{RedactFlows, RedactState};
pub use redactor::{HitKind, Hits, Mode, PointerPattern, RULES, Redacted, Redactor};
pub use streams::Streams;
