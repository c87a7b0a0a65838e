//! Where threads and runs are kept: an SQLite database, in a file or in memory.
//!
//! `desk` is the thread that has the only connection; `schema` is what the database looks like and
//! how an older one becomes so; `rows` reads and writes. Everything that a client is told of a run
//! was committed before, so a relay that is killed forgets nothing that it has said.
//!
//! # Why
//!
//! **One thread, one connection, for reading as well.** What is asked in a row is answered in a row,
//! so a client that has been told of a change sees it in a search. Jobs that wait together are
//! committed together.
//!
//! **The write-ahead log is not synchronised at each commit.** A killed process loses nothing by
//! that; a machine that loses power loses at most the last moments, and never consistency.

mod desk;
mod rows;
mod schema;

pub(super) use desk::Store;
pub(super) use rows::{
    copy_turns, delete_run, delete_thread, find_runs, find_threads, has_session, insert_run,
    insert_thread, insert_turn, read_run, read_thread, read_turns, thread_status, update_run,
    update_thread,
};
