//! Agents behind HTTP: what our client's half says, hears, and makes of servers that fail.

mod elephant;
mod events;
mod faults;
mod server;
mod streams;
mod tls;
mod turns;
