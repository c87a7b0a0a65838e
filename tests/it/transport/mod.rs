//! Transports: what every one of them promises, and what each of them does besides.

mod frames;
pub(crate) mod http;
mod http_client;
mod place;
mod sockets;
mod streams;
mod suite;
mod tls;
mod websocket;
