//! The configuration file, and what is served by it: names, reloading, the end, systemd.

mod drain;
mod faults;
mod names;
mod places;
mod reload;
mod service;
mod stage;
