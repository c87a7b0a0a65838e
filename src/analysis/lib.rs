//! What can be found out from recordings and mapping tables without a network, for the command line
//! and the viewer.
//!
//! [`lint`] checks a conversation, [`filter`] selects its events, [`Annotations`] has what a filter
//! needs of the whole recording, and [`figures`] has its durations. [`translate`] translates a file,
//! [`Repairs`] finds the rules that repair it, [`retranslate`](mod@retranslate) repeats the
//! translations of a recording, [`draft`] writes tables, and [`VectorReport`] is of golden vectors, with
//! `scripted` conversations among them; [`Columns`] shows a table, [`CheckedTable`] checks one. Nothing is printed here.

#![warn(clippy::indexing_slicing)]

mod annotations;
#[expect(clippy::indexing_slicing, reason = "members of JSON")]
pub mod check;
mod chunk_run;
#[expect(clippy::indexing_slicing, reason = "members of JSON")]
mod columns;
#[expect(clippy::indexing_slicing, reason = "indices it has found")]
pub mod draft;
#[expect(clippy::indexing_slicing, reason = "members of JSON")]
pub mod export;
pub mod figures;
pub mod filter;
#[expect(clippy::indexing_slicing, reason = "members of JSON")]
pub mod import;
pub mod junit;
mod leaves;
pub mod lint;
#[expect(clippy::indexing_slicing, reason = "one item for each side")]
mod repairs;
pub mod retranslate;
#[expect(clippy::indexing_slicing, reason = "one item for each side")]
mod scripted;
mod scrub;
#[expect(clippy::indexing_slicing, reason = "a position that it has found")]
pub mod search;
#[expect(clippy::indexing_slicing, reason = "members of JSON")]
mod table_check;
#[expect(clippy::indexing_slicing, reason = "it cuts at the length")]
pub mod text;
#[expect(clippy::indexing_slicing, reason = "one relay for each side")]
pub mod translate;
#[expect(clippy::indexing_slicing, reason = "a position in its own list")]
mod vectors;

pub use annotations::Annotations;
pub use chunk_run::{ChunkFolder, ChunkRun};
pub use columns::Columns;
pub use repairs::Repairs;
pub use scrub::{Scrubbed, scrub};
pub use table_check::CheckedTable;
pub use vectors::{VectorOutcome, VectorReport};
