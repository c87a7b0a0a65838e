//! The viewer: recordings in a browser.
//!
//! One page, embedded in the program, and a small server that gives it windows of a recording:
//! [`mod@index`] knows where every event stands, [`mod@book`] holds one recording and follows it
//! while it grows, [`mod@search`] filters and [`mod@findings`] lints
//! it, [`mod@rows`] spells what the page asks for. What may be
//! asked is in [`mod@routes`], who may ask in [`mod@door`]. The page is in `page/`, without a build
//! step. Not here: the format (see `crate::recording`).

mod book;
mod door;
mod findings;
mod index;
mod open;
mod page;
mod query;
mod routes;
mod rows;
mod search;
mod server;
mod shelf;

pub(super) use door::Door;
pub(super) use open::{Open, run};
pub(super) use routes::Viewer;
