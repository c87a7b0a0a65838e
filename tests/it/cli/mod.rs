//! The built program at its command line: its output and its exit codes.

mod forwarding;
mod files;
mod guards;
mod http;
mod returns;
mod resources;
mod dialects;
mod stderr;
pub(crate) mod signals;
mod stops;
mod browser;
mod progress;
mod local_times;
mod last_line;
mod outages;
mod whose_files;
mod silent_agents;
