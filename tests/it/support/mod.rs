//! What several modules of the suite share.

pub(crate) mod link;
