//! The relay's part in the logins of an agent.

use jsonrpc::IdBuf;
use policy::LoginRedirect;

/// What the relay does for logins.
#[derive(Debug, Default)]
pub(super) struct Login {
    pub(super) role: Option<LoginRole>,
    /// The relay at the client has announced that it opens pages.
    pub(super) is_announced: bool,
    /// The client may have a request open in which it logs in.
    pub(super) may_be_open: bool,
    /// At the agent: requests for pages so far, and the one whose answer is awaited.
    pub(super) requests: u64,
    pub(super) awaited: Option<Awaited>,
    /// What is to be delivered to a port of the agent, or why nothing is.
    pub(super) delivery: Option<Result<(u16, String), String>>,
    /// At the client: the page that the agent has sent the client to, and pages of this login so far.
    pub(super) shown: Option<String>,
    pub(super) pages: u32,
    /// The request of the other relay, and whether the client opens the page itself; and the page.
    pub(super) asked: Option<(IdBuf, bool)>,
    pub(super) page: Option<LoginCall>,
}

/// A request for a page.
#[derive(Debug)]
pub(super) struct Awaited {
    /// Its id, in JSON.
    pub(super) id: String,
    pub(super) redirect: Option<LoginRedirect>,
    /// The client opens the page itself.
    pub(super) is_shown: bool,
}

/// Which of the two relays this one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginRole {
    /// It runs the agent.
    Agent,
    /// It is at the client, and opens pages.
    Client,
}

/// A page that is to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginCall {
    /// Its address.
    pub address: String,
    /// The client opens it, so that only its redirect is awaited.
    pub is_shown: bool,
}
