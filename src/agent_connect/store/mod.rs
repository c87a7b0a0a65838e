//! The database of threads and runs: SQLite, in a file or in memory.
//!
//! `worker` runs jobs on the only connection, in threads for blocking work; `schema` creates the
//! tables; `runs` and `threads` read and write the `owned_rows` of one owner. Every state of a run is
//! committed before a client receives it, so a relay that is killed loses nothing that it has
//! reported.
//!
//! # Decisions
//!
//! **One connection, for reads as well.** Jobs run in order, so a client that has received a change
//! finds it in a search.
//!
//! **The write-ahead log is not synchronised at each commit.** A killed process loses nothing by
//! that; a power failure loses at most the last moments, and never consistency.

mod owned_rows;
mod runs;
mod schema;
mod threads;
mod worker;

pub(super) use owned_rows::OwnedRows;
pub(super) use worker::RunStore;
