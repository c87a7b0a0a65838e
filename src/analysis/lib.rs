//! What can be found out from recordings and mapping tables without a network. For the command line,
//! the viewer, and programs that judge recordings.
//!
//! ```
//! use analysis::lint::Linter;
//! use recording::{Parsed, SegmentReader};
//!
//! # fn main() -> std::io::Result<()> {
//! let file = std::io::Cursor::new(b"");
//! let mut linter = Linter::default();
//! for entry in SegmentReader::new(file) {
//!     match &entry?.parsed {
//!         Parsed::Header(header) => linter.begin(header),
//!         Parsed::Event(event) => drop(linter.add(event)),
//!         Parsed::Invalid(_) => linter.skip_line(),
//!     }
//! }
//! for finding in linter.end() {
//!     println!("{} {} {}", finding.n, finding.rule.id, finding.what);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - Of recordings: [`lint`] checks a conversation, [`filter`] selects its events, [`Annotations`] has
//!   what a filter needs of the whole recording, [`figures`] its durations, [`Statistics`] counts, and [`search`] finds texts.
//!   [`export`] and [`import`] know the formats of other programs, [`scrub`](fn@scrub) makes a copy, and
//!   [`retranslate`](mod@retranslate) repeats the translations.
//! - Of captures: [`check`] compares them with the schemas, [`Repairs`] finds the rules that repair
//!   them, and [`translate`] translates them.
//! - Of tables: [`CheckedTable`] checks one, [`Columns`] shows one, [`draft`] writes one, and
//!   [`VectorReport`] has the results of golden vectors, with `scripted` conversations among them.
//!
//! [`lines`], [`text`] and [`junit`] are how results are shown. Nothing is printed here.

mod annotations;
pub mod check;
mod chunk_run;
mod columns;
pub mod draft;
pub mod export;
pub mod figures;
pub mod filter;
pub mod import;
pub mod junit;
mod leaves;
pub mod lines;
pub mod lint;
mod repairs;
pub mod retranslate;
mod scripted;
mod scrub;
pub mod search;
mod statistics;
mod table_check;
pub mod text;
pub mod translate;
mod vectors;

pub use annotations::Annotations;
pub use chunk_run::{ChunkFolder, ChunkRun};
pub use columns::Columns;
pub use repairs::Repairs;
pub use scrub::{Scrubbed, scrub};
pub use statistics::{NameCounts, SentTotals, Statistics};
pub use table_check::CheckedTable;
pub use vectors::{VectorOutcome, VectorReport};
