//! The viewer: recordings in a browser.
//!
//! One page, embedded in the program, and a small server that sends it windows of a recording:
//! [`mod@index`] knows the position of every event and its findings, [`mod@content`] is what has been
//! read of a recording, [`mod@reader_thread`] follows it while it grows and lints it, [`mod@search`]
//! filters, [`mod@library`] has the recordings, and [`mod@rows`] encodes the rows for the page.
//! [`mod@overview`] has a row for each recording, [`mod@search_all`] searches all of them, and
//! [`mod@side_by_side`] compares two; they read through [`mod@bounded`].
//! [`mod@routes`] admits requests and answers them. The page is in `page/`, without a build step.
//!
//! # Why
//!
//! **The page starts nothing.** A replay runs a program of the user's choice. If a page could start
//! it, everything that can make the browser send requests (an extension, an injected script) could
//! run programs; so the page shows the command line, and the user runs it. For the same reason an
//! address is valid for one run: one in a browser's history is worthless later.
//!
//! **Dropped files go to the server that served the page**, which unpacks and lints them. It is
//! reached by its address alone, keeps a bounded number of bytes in a temporary folder, and deletes
//! them at its end; nothing is written beside the recordings.
//!
//! **The page has its own filter and index**, for plain files where no program runs (`--page`). The
//! same vectors test the filter of the page and of the program.

#![warn(clippy::indexing_slicing)]

mod bounded;
mod content;
mod index;
mod library;
mod overview;
mod page;
mod reader_thread;
mod routes;
mod rows;
mod search;
mod search_all;
mod side_by_side;

pub use library::ImportCapture;
pub use page::single_file;
pub use routes::{RuleLookup, Viewer, ViewerAccess, router};
