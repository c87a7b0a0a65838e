//! Where threads and runs are kept: an SQLite database, in a file or in memory.
//!
//! `desk` is the thread that has the only connection; `schema` is what the database looks like and
//! how an older one becomes so; `runs` and `threads` read and write it, and `columns` what stands in
//! one place of it. Everything that a client is told of a run was committed before, so a relay that
//! is killed forgets nothing that it has said.
//!
//! # Why
//!
//! **One thread, one connection, for reading as well.** What is asked in a row is answered in a row,
//! so a client that has been told of a change sees it in a search. Jobs that wait together are
//! committed together.
//!
//! **The write-ahead log is not synchronised at each commit.** A killed process loses nothing by
//! that; a machine that loses power loses at most the last moments, and never consistency.

mod columns;
mod desk;
mod runs;
mod schema;
mod threads;

pub(super) use desk::Store;
pub(super) use runs::{delete_run, find_runs, insert_run, read_run, update_run};
pub(super) use threads::{
    copy_turns, delete_thread, find_threads, has_session, insert_thread, insert_turn, read_thread,
    read_turns, thread_status, update_thread,
};
