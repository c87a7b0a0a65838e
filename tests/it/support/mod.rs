//! What several modules of the suite share.
