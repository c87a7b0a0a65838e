//! The program: what its command line means, and how it starts and stops.
//!
//! One file for each subcommand. Not here: anything a conversation needs to know.

mod admin;
mod agent_connect;
mod agents;
mod border;
mod check;
mod cli;
mod common;
mod connect;
mod console;
mod config;
mod conversation;
mod demo;
mod dialect;
mod discretion;
mod door;
mod endpoints;
mod examples;
mod exit;
mod findings;
mod http;
mod inspect;
mod junit;
mod limits;
mod listeners;
mod margin;
mod memory;
mod page;
mod processes;
mod record;
mod remote;
mod repairs;
mod replay;
mod runtime;
mod seldom;
mod serve;
mod several;
mod shell;
mod shutdown;
mod state;
mod status;
mod stderr;
mod stint;
mod telemetry;
mod token;
mod tongues;
mod top;
mod traces;
mod viewer;

pub use cli::run;
pub use config::faults as configuration_faults;
