//! The built program at its command line: what it says, and the codes it exits with.

mod carries;
mod files;
mod guards;
mod http;
mod refuses;
mod returns;
mod scarce;
mod speaks;
mod stops;
