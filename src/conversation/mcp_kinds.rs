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
        let version = member(result, "protocolVersion").filter(|version| *version == b"1");
        let capabilities = version.and(member(result, "agentCapabilities"));
        let offered = member(capabilities.unwrap_or_default(), "mcpCapabilities");
        let offers = |kind| member(offered.unwrap_or_default(), kind) == Some(b"true");
        version.map(|_| Self {
            http: offers("http"),
            sse: offers("sse"),
        })
    }
}
