//! What is kept out of a recording.
//!
//! A recording is evidence that is passed around, and conversations are full of keys. So secrets
//! are replaced when a line is written, by a keyed hash that lets equal ones be seen as equal;
//! what is forwarded is not touched. Two kinds of rule find them: by place ([`places`]: environment
//! variables, headers, what is said to authenticate, the user's own pointers) and by shape
//! ([`shapes`]: keys of known makers, tokens, PEM, random text after a telling name). All else
//! keeps its bytes, but the rest of a string that is JSON itself, which is spelled anew around what
//! was replaced. A secret that an agent says in pieces, in several messages, is known by the piece
//! before ([`Streams`]).

mod arguments;
mod commands;
mod escapes;
mod forms;
mod given;
mod headers;
mod level;
mod memory;
mod names;
mod nested;
mod options;
mod pattern;
mod piece;
mod piped;
mod places;
mod random;
mod redactor;
mod rule;
mod runs;
mod shapes;
mod streams;
mod table;
mod urls;
mod walk;
mod words;

pub(super) use escapes::begins_word;
pub use memory::Memory;
pub use pattern::Pattern;
pub use redactor::{Flow, Mode, RULES, Redactor};
pub use rule::{Hits, Rule};
pub use streams::Streams;
