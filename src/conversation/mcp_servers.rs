//! MCP servers of a kind that the agent does not offer to connect to: many agents leave them out without
//! a word, and the user misses their tools.

use super::state::Conversation;
use super::{Note, Outbox};
use jsonrpc::{Envelope, Frame, member, member_text, printable, text, truncated};

/// Requests that name MCP servers.
const NAMING: [&[u8]; 4] = [
    b"session/new",
    b"session/load",
    b"session/resume",
    b"session/fork",
];

/// The longest name that is shown, in characters.
const MAX_NAME: usize = 80;

impl Conversation {
    /// Notes the MCP servers in a request of the client that the agent does not offer to connect to.
    pub(super) fn note_mcp_servers(&self, frame: &Frame, at: &Envelope, out: &mut Outbox) {
        let Some(kinds) = self.mcp_kinds else {
            return;
        };
        if !NAMING.contains(&at.raw_method(frame)) {
            return;
        }
        let servers = at
            .body(frame)
            .and_then(|params| member(params, "mcpServers"));
        for server in text::items(servers.unwrap_or_default()) {
            let kind = match &*member_text(server, "type").unwrap_or_default() {
                "http" if !kinds.http => "http",
                "sse" if !kinds.sse => "sse",
                _ => continue,
            };
            let name = member_text(server, "name").unwrap_or_default();
            let name = truncated(&printable(name.as_bytes()), MAX_NAME);
            out.note(Note::McpServer { name, kind });
        }
    }
}
