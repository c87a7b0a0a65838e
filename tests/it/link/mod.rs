//! The resumable link: its headers, its state machines, and a simulation of lost connections.

mod gone;
mod header;
mod opening;
mod oversized;
mod replay_buffer;
mod simulation;
mod state;
mod table;
