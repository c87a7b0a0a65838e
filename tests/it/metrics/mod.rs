//! The instruments: every metric against the list of them, the admin listener, who may ask, and
//! the files for monitoring systems.

mod admin;
mod packaging;
mod series;
mod stage;
