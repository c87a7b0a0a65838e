//! Transports: the conformance suite that all of them pass, and the tests of each one.

mod decorators;
mod frames;
mod http;
mod http_client;
mod pairs;
mod resumable;
mod script;
mod sockets;
mod streams;
mod suite;
mod tls;
mod websocket;
