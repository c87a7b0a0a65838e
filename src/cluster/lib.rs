//! Agents on many machines behind one address: hosts and gateways, which meet on NATS.
//!
//! A *host* is a relay whose agents clients of other relays use; a *gateway* is the relay that those
//! clients connect to. `record` is what a host says of itself, and where a new conversation is
//! placed; `host` says it, and accepts what gateways open; `gateway` finds a host and opens a
//! connection there, and `forward` passes a client's resumable link on to it. `nats` is the
//! connection to the servers, `carrier` carries a link over it, in `parts`; a `ticket` tells a host
//! who the client is. `session_directory` says which host a living session is on, and `sessions` claims
//! those of a host (`owned`), so that a gateway finds it (`placed`). `guests` are the clients whose credentials
//! the gateways check. `counts` are for the metrics.
//!
//! # Why
//!
//! **A carrier is only ever an attachment of a resumable link.** NATS drops messages of slow
//! consumers by design, so a carrier numbers its parts and ends when one is missing; the link behind
//! it sends again what was not acknowledged, and its window bounds what waits anywhere.
//!
//! **A link says in its name where it ends.** So each gateway finds the host of a link that a client
//! resumes without a directory, and has nothing to lose when it ends.

mod carrier;
mod counts;
mod forward;
mod gateway;
mod guests;
mod host;
mod nats;
mod owned;
mod parts;
mod placed;
mod record;
mod request;
mod session_directory;
mod sessions;
mod ticket;

pub use counts::counts;
pub use forward::Greeted;
pub use gateway::{Gateway, GatewaySettings};
pub use host::{Host, HostSettings};
pub use nats::{Nats, NatsSettings, read_server};
pub use parts::{Joined, Joiner, Splitter};
pub use placed::{Find, placed};
pub use record::{Directory, HostRecord, Placement};
pub use session_directory::{SessionRecord, owners};
pub use sessions::is_given_up;
pub use ticket::{Claims, Guest, Purpose, Signer, TicketError, Verifier};

use transport::AddedTransport;

/// The transport of `cluster:` endpoints.
pub const TRANSPORT: AddedTransport = AddedTransport {
    check: |_| Ok(()),
    connect: gateway::connect,
    listen: host::listen,
};
