//! Translation by tables: between the dialect of a peer and canonical ACP.
//!
//! Canonical is the stable v1 wire format. A dialect is one *table* (a file in `mappings/`, whose
//! language `mappings/README.md` specifies); a [`Library`] has all tables, [`Library::program`]
//! flattens one with those it extends into a [`Program`], and a [`Translator`] applies it for one
//! peer of one connection:
//!
//! ```
//! use dialect::{Forward, Library, Translator};
//! use jsonrpc::{Frame, Limits, Scanned, Side, scan};
//!
//! let library = Library::builtin();
//! let program = library.program("elephant").expect("it is built in");
//! let mut agent = Translator::new(Side::Agent, program);
//! let frame = Frame::from(
//!     r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"1","title":"Send","kind":"channel"}}}"#,
//! );
//! let Scanned::Message(at) = scan(&frame, &Limits::default()) else { panic!("it is a message") };
//! let translation = agent.read(&frame, &at); // dialect → canonical; `write` is the way back
//! let Forward::Frames(frames) = &translation.forward else { panic!("a rule has changed it") };
//! assert!(String::from_utf8_lossy(frames[0].as_bytes()).contains(r#""kind":"other""#));
//! assert_eq!(&*translation.fired[0].rule, "tool-updates");
//! ```
//!
//! A [`Translation`] contains what is forwarded ([`Forward::Unchanged`] is the same bytes), what is
//! sent back to the sender, the rules that changed something, and notes to count. The checks of
//! [`permission`] apply whatever a table contains. The crate has no clock and no I/O, and imports
//! only `jsonrpc`.
//!
//! From the file to the bytes: [`table`] reads it into types, `validate` checks them, `program`
//! compiles a stack of tables, `translate` passes a message through the stack, `step` applies one
//! table with `rewrite` and `action`, on the lazy `tree` of the message.

mod action;
mod body;
mod convert;
mod detect;
mod guard;
mod guess;
mod library;
mod memory;
mod message;
mod methods;
mod object;
mod pending;
pub mod permission;
mod pointer;
mod program;
mod recent;
mod required_words;
mod rewrite;
mod sessions;
mod step;
pub mod table;
mod template;
mod text;
mod translation;
mod translate;
mod translator;
mod tree;
mod validate;
mod vectors;
pub mod versions;

pub use body::MessageBody;
pub use detect::{DetectedDialect, Detector};
pub use guess::PATH_SEGMENT;
pub use library::{DialectError, Library, Source, TABLES, TABLES_DIGEST};
pub use methods::{MethodName, is_known};
pub use methods::{is_canonical, is_defined, is_known_raw};
pub use pointer::JsonPointer;
pub use program::{FiredRule, Program, StackEntry};
pub use table::{Converter, Table, TableFault, TableFaults, Way};
pub use text::JsonType;
pub use translation::{DialectEvent, DialectNote, Forward, Translation};
pub use translator::Translator;
pub use tree::{Blocked, Node};
pub use vectors::{Vector, VectorResult};
