//! The relay itself: its loop between two scripted peers, in virtual time.

mod ending;
mod flow;
mod law;
mod resume;
