//! The instruments: every metric against the list of them, what the door counts, traces, the admin
//! listener, who may ask, and the files for monitoring systems.

mod admin;
mod door;
mod packaging;
mod series;
mod stage;
mod traces;
