//! The one integration binary, a module per capability.
mod process;
