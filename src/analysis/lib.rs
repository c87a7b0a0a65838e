//! What can be found out from recordings and mapping tables without a network, for the command line
//! and the viewer.
//!
//! [`lint`] checks a conversation, [`filter`] selects its events, [`Annotations`] has what a filter
//! needs of the whole recording, and [`figures`] has its durations. Nothing is printed here.

#![warn(clippy::indexing_slicing)]

mod annotations;
pub mod figures;
pub mod filter;
mod leaves;
pub mod lint;

pub use annotations::Annotations;
pub use leaves::find_leaf;
