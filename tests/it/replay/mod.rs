//! Recordings that are replayed: as the agent, as the client, and through the whole program.

mod agent;
mod captures;
mod client;
mod dialects;
mod live;
mod overlap;
mod program;
mod stage;
