//! The viewer: recordings in a browser.
//!
//! One page, embedded in the program, and a small server that gives it windows of a recording:
//! [`mod@index`] knows where every event stands, [`mod@book`] holds one recording and follows it
//! while it grows, [`mod@search`] filters and [`mod@findings`] lints
//! it, [`mod@rows`] spells what the page asks for. What may be
//! asked is in [`mod@routes`], who may ask in [`mod@door`]. The page is in `page/`, without a build
//! step. Not here: the format (see `crate::recording`).
//!
//! # Why
//!
//! **The page starts nothing.** A replay runs a program of the user's choice. Were it started from a
//! page, everything that can make the browser ask (an extension, a script that found a way in) could
//! run programs; so the page gives the command line, and a person runs it. For the same reason an
//! address is good for one run: what is left of it in a browser's history is worth nothing later.
//!
//! **The page has a filter, a linter and an unpacker of its own.** They are for files that are
//! dropped onto it where there is no program to ask. The program's would take WebAssembly, a second
//! target to build for and a policy that lets pages compile code. What the page finds is held against
//! what the program finds, with the same vectors.
//!
//! **What is dropped onto the page is judged by no server.** The page could ask the viewer that gave
//! it, which has the schema. But it promises that what is dropped is sent nowhere; an address on
//! loopback may be a tunnel to another machine, which no page can tell; and a viewer on an admin port
//! would work on what anybody sends, where now everything is read and nothing taken. So the page
//! names the command that judges all of it.

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
pub(super) use routes::{Viewer, router};
