//! Logins of an agent in a browser that is on the client's machine, and what comes back from there.
//!
//! Where the agent runs, the pages that it opens come from its process (`process::browser`), and what
//! the browser was redirected with is delivered to the port that the agent waits at. Where the client
//! is, a function opens the page. Between the two is the conversation.

use std::sync::Arc;

use super::process::AgentBrowser;
use futures_util::future::BoxFuture;

/// Opens the page of an address, and waits for what its login redirects the browser to: path and query;
/// `None` if it redirects to nothing that the agent waits for. The error says why nothing was opened, or
/// why nothing has come. Dropped, it waits no longer.
pub type OpenPage =
    Arc<dyn Fn(String) -> BoxFuture<'static, Result<Option<String>, String>> + Send + Sync>;

/// The relay's part in the logins of an agent.
pub enum LoginEnd {
    /// The agent runs here.
    Agent(AgentBrowser),
    /// The agent is behind another relay. Of a page that the client opens itself, as it does for an
    /// elicitation, only the redirect is awaited, by the second function.
    Client {
        /// Opens a page.
        open: OpenPage,
        /// Waits for the redirect of one that the client opens.
        wait: OpenPage,
    },
}

jsonrpc::opaque_debug!(LoginEnd);
