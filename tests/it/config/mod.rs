//! The configuration file, and what it controls: names, reloading, the drain, systemd.

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
