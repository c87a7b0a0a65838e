//! The configuration file, and what is served by it: names, reloading, the end, systemd.

mod agent_connect;
mod auth;
mod drain;
mod faults;
mod names;
mod places;
mod reload;
mod service;
mod show;
pub(crate) mod stage;
