//! `--client-framing` and `--agent-framing`, also keys of the configuration file.

use clap::ValueEnum;

use jsonrpc::framing::Framing;

/// For a person whose agent does not answer.
pub(super) const HINT: &str =
    "If the agent waits for Content-Length headers, it needs `--agent-framing content-length`";

/// How a byte stream is divided into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FramingChoice {
    /// By the peer's first bytes; one message per line until then
    Auto,
    /// One message per line
    Ndjson,
    /// Content-Length headers
    ContentLength,
}

impl FramingChoice {
    pub(super) const fn fixed(self) -> Option<Framing> {
        match self {
            Self::Auto => None,
            Self::Ndjson => Some(Framing::Ndjson),
            Self::ContentLength => Some(Framing::ContentLength),
        }
    }
}
