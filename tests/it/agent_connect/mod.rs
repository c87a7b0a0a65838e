//! Agent Connect: served, with a client over HTTP, a relay, and an agent that a test speaks for; and
//! used, with a server that answers as it is written.

mod back_to_back;
mod flows;
mod principals;
mod stage;
mod vectors;
mod remote;
mod sessions;
mod several;
