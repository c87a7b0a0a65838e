//! Agent Connect, served: a client over HTTP, a relay, and an agent that a test speaks for.

mod flows;
mod principals;
mod stage;
mod vectors;
