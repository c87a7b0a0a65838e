//! A resumable link over attachments: WebSockets with the subprotocol [`SUBPROTOCOL`], or byte
//! streams whose first message is a greeting.
//!
//! `end` is one end of a link, which reads and writes the current `attachment`; `half` makes a
//! [`Link`](super::Link) of it. The client's end is made by `connect`, and connects again with
//! `dialer`, which `network` wakes after sleep and when the network has changed; `outages` is what is
//! logged of that. The server's end is made by [`Links`], which finds it for a client that comes
//! back. `watchdog` starts the process that ends a link whose client is killed. `wire` is what both
//! write, `stats` what is counted. The numbers, and what they mean, are in [`link`].
//!
//! # Why
//!
//! **An attachment is read whether the conversation takes messages or not**, up to the window: behind
//! them are the acknowledgements that let the other direction continue. So neither direction waits
//! for the other, however slow a peer is.
//!
//! **The client's greeting is sent while a connection is opened**: in the request for a WebSocket, and
//! of a new link in the command of ssh. So the first answer needs one round trip less. An older server does not
//! take it from there, and gets it as the first message.
//!
//! **The end of a link is said and answered.** Everything else that ends an attachment is a loss,
//! after which the client connects again, also to say that the link ends.

mod attachment;
mod connect;
mod dialer;
mod end;
mod half;
mod links;
mod network;
mod outages;
mod stats;
mod watchdog;
mod wire;

pub use connect::{Carrier, Dial, connect};
pub(super) use dialer::{end_link, first_greeting, pause};
pub(super) use links::begun;
pub use links::{LinkPlace, Links};
pub use watchdog::SUBCOMMAND;
pub(super) use watchdog::{Contact, ContactSource, Lost};
pub(super) use wire::{SUBPROTOCOL, carrier_limits};
