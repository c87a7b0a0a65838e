//! `acp-relay serve`: listens for clients and gives each an agent of its own.
//!
//! `command` starts and ends it. `plan` is what the command line and the configuration file come
//! to: listeners, and a `roster` of agents. `listening` keeps the listeners open and changes them
//! when the file is read again; `reception` takes those who come, and `house` welcomes each: finds
//! the agent it asks for, or tells it why not. `seats` counts them, and `manager` is whoever started
//! us and wants to know how we are. Not here: a conversation (see `conversation`).
//!
//! # Why
//!
//! **Read again, not started again.** On SIGHUP a new plan is made from the file as it is now. If
//! anything is wrong with it nothing changes. Otherwise listeners that are in both stay bound, and
//! take on what can change (who may come, certificates, which agents there are); conversations go
//! on as they began, each with the plan it was begun with.

mod command;
mod house;
mod listening;
mod manager;
mod plan;
mod reception;
mod roster;
mod seats;

pub(super) use command::{place, run, sockets};
pub(super) use plan::listener_parts;
