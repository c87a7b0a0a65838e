//! The program: what its command line means, and how it starts and stops.
//!
//! One file for each subcommand. Not here: anything a conversation needs to know.

mod cli;
mod connect;
mod demo;
mod exit;
mod household;
mod limits;
mod serve;
mod shutdown;
mod telemetry;

pub use cli::run;
