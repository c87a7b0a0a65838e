//! The database of threads and runs: SQLite, in a file or in memory.
//!
//! `worker` is the thread that owns the only connection; `schema` creates and migrates the tables;
//! `runs` and `threads` read and write the `owned_rows` of one owner, and `columns` converts
//! values. Every state of a run is committed before a client receives it, so a relay that is killed
//! loses nothing that it has reported.
//!
//! # Decisions
//!
//! **One thread and one connection, for reads as well.** Jobs run in order, so a client that has
//! received a change finds it in a search. Jobs that wait together are committed together.
//!
//! **The write-ahead log is not synchronised at each commit.** A killed process loses nothing by
//! that; a power failure loses at most the last moments, and never consistency.

mod columns;
mod owned_rows;
mod runs;
mod schema;
mod threads;
mod worker;

pub(super) use owned_rows::OwnedRows;
pub(super) use worker::RunStore;
