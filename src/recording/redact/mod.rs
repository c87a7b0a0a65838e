//! Removes secrets from what is recorded.
//!
//! Secrets are replaced by a keyed hash when a line is written, so that equal ones can be seen to
//! be
//! equal; forwarded bytes are not touched. Two kinds of rule find them: by place ([`places`]:
//! environment variables, headers, authentication requests, pointers of the user) and by shape
//! ([`shapes`]: keys of known makers, tokens, PEM, random text after suggestive names). Everything
//! else keeps its bytes, except that a string with JSON in it is encoded anew around what was
//! replaced. A secret that is sent in pieces over several messages is recognised by the pieces
//! before ([`Streams`]).

mod arguments;
mod commands;
mod escapes;
mod forms;
mod headers;
mod hits;
mod inside;
mod level;
mod messages;
mod named_secrets;
mod names;
mod options;
mod pattern;
mod piece;
mod piped;
mod places;
mod random;
mod redactor;
mod runs;
mod shapes;
mod streams;
mod table;
mod urls;
mod walk;
mod words;

pub(super) use escapes::begins_word;
pub use hits::{HitKind, Hits};
pub use messages::{RedactFlows, RedactState};
pub use pattern::PointerPattern;
pub use redactor::{Mode, RULES, Redactor};
pub use streams::Streams;
