//! Recordings that are replayed: as the agent, as the client, and through the whole program.

mod captures;
mod dialects;
mod live;
mod played;
mod program;
mod tests;
