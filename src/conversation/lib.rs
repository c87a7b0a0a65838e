//! The sans-IO core of one conversation.
//!
//! A state machine between two links: it receives frames, decides what is sent to which side, and
//! tracks the open requests. It does no I/O and reads no clock; time is an argument, and the
//! resulting actions wait in the [`Outbox`]. It does not depend on transports.
//!
//! # The path of a message
//! [`Conversation::handle_frame`], in `receive`, scans it, and `translation` makes it canonical if its
//! sender uses a dialect, with the translator in `dialect_options`. Then `receive` stores a request, or
//! finds the request of an answer; and `send` checks it against the policy and puts it into the
//! `outbox`, through `translation` again when the other side uses a dialect. `state` is what all of
//! them share.
//!
//! `claims` has messages wait until their session is claimed, where other relays may have it, and
//! `early_updates` holds notifications until the client knows their session. `batch` takes batches
//! apart and collects their answers.
//!
//! `shutdown` decides how a conversation ends, and `final_error` which requests are answered then
//! and with which errors. `link_status` reports outages to the client. `cancelled` answers what it has
//! cancelled and a side does not end, with `own_answers`; `silence` tells and ends requests whose
//! answers do not come, with `silence_state`. `restart` starts an agent again that has died, with
//! `restart_state`, `restart_memory` and `restart_queue`. `mcp_servers` notes what an agent will not
//! connect to, with `mcp_kinds`. `note` is what happened besides. `summary`, with `known_values`,
//! `tokens` and `trace_context`, describes messages for observers. `rejected` handles what cannot
//! be passed on, `salvage` finds messages in it, and `non_json` keeps what an
//! agent prints. [`offline`] runs a conversation whose messages are in a file.
//!
//! # Why
//! *Answers are matched by side.* The two sides number their requests independently (all
//! JavaScript and Python agents start at 0), so there is one table of open requests for each side
//! that asks.
//!
//! *A second request with an id still in flight is refused* rather than forwarded: two answers with
//! one id cannot be distinguished.
//!
//! *An answer whose id differs only by the precision of doubles is accepted*, and passed on with
//! the id of the request: half of the agents are JavaScript and cannot keep 9007199254740993.
//!
//! *Errors without an id are passed on.* Programs built on the Rust SDK answer notifications and
//! broken lines with an error that has no id. It answers no request, but it is for the peer.
//!
//! *A half-closed client may wait for its answers.* When a client has ended its stream but still
//! receives, the time an agent has before SIGTERM counts from its last message as long as it owes
//! an answer, so `printf … | acp-relay connect …` gets one. That time is the same few seconds as
//! always, because a killed client looks no different from one that waits, and an agent that
//! neither sends nor ends must not stay for it.
//!
//! *A relay that is asked to stop lets turns end.* Answers and permissions still pass while it
//! drains; only new requests are refused. It cannot send an interrupted prompt again.
//!
//! *The client's last requests are read before its link is closed.* What it had asked by the time
//! the agent died is answered; and a socket closed with unread bytes is reset, which could lose the
//! answers.

mod batch;
mod cancelled;
mod claims;
mod claims_state;
mod dialect_options;
mod early_updates;
mod final_error;
mod known_values;
mod link_status;
mod login;
mod login_state;
mod mcp_kinds;
mod mcp_servers;
mod non_json;
mod note;
pub mod offline;
mod outbox;
mod own_answers;
mod receive;
mod rejected;
mod restart;
mod restart_memory;
mod restart_queue;
mod restart_state;
mod salvage;
mod send;
mod session_id;
mod shutdown;
mod shutdown_state;
mod silence;
mod silence_state;
mod state;
mod summary;
mod tokens;
mod trace_context;
mod translation;
mod versions;

pub use dialect::DetectedDialect as Detection;
/// The parts of a note about a dialect.
pub use dialect::versions::V2_DIALECT;
pub use dialect::{DialectEvent, FiredRule};
pub use dialect_options::{DialectChoice, DialectOptions};
pub use known_values::{Method, PermissionOutcome, StopReason, ToolKind, ToolStatus};
pub use link_status::wants_status;
pub use login_state::{LoginCall, LoginRole};
pub use non_json::LogRedaction;
pub use note::Note;
pub use outbox::{Command, Needs, Outbox};
pub use shutdown_state::Cause;
pub use silence_state::SilentRequest;
pub use state::{Conversation, LinkTraits};
pub use summary::{Content, MessageSummary, SessionHash, Topic, TraceAssigner};
pub use tokens::{TokenKind, Tokens};
pub use trace_context::TraceContext;
