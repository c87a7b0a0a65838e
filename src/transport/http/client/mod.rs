//! The HTTP client.
//!
//! `http_client` sends requests to one server, through connections from `dialer`, with the
//! `cookies` of the server; `tunnel` is the way through a proxy; `response` reads bodies and refusals,
//! and `sse` cuts events out of bytes.
//!
//! **Redirects are not followed.** A bearer token would go wherever the response points.

mod cookies;
mod dialer;
mod http_client;
mod response;
mod sse;
mod tunnel;

pub use dialer::{ClientStream, HttpStream};
pub use http_client::{HttpClient, NoResponse};
pub(crate) use response::{SOONEST_RETRY, ServerRefusal, discard};
pub use response::{read_body, retry_after};
pub use sse::{SseEvent, SseReader};
pub use tunnel::https_proxy;
