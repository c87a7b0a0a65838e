//! What several modules of the suite share.

pub(crate) mod bridge;
pub(crate) mod link;
pub(crate) mod memory;
pub(crate) mod once;
pub(crate) mod program;
