//! Agents behind HTTP: what our client sends and receives, and what it does when servers fail.

mod elephant;
mod events;
mod requests;
mod scripts;
mod server;
mod streams;
mod tls;
