//! The kinds of MCP servers that an agent offers to connect to.

use jsonrpc::member;

/// What an agent offers to connect to besides programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct McpKinds {
    pub(super) http: bool,
    pub(super) sse: bool,
}

impl McpKinds {
    /// Of the result of `initialize`; `None` when that is not one of v1.
    pub(super) fn of(result: &[u8]) -> Option<Self> {
        if member(result, "protocolVersion") != Some(b"1") {
            return None;
        }
        let capabilities = member(result, "agentCapabilities").unwrap_or_default();
        let offered = member(capabilities, "mcpCapabilities").unwrap_or_default();
        let offers = |kind| member(offered, kind) == Some(b"true");
        Some(Self {
            http: offers("http"),
            sse: offers("sse"),
        })
    }
}
