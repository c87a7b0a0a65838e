//! The grammar of addresses.

use std::path::PathBuf;

/// Where a peer is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Endpoint {
    /// Our own stdin and stdout: `stdio:`.
    Stdio,
    /// A child process: `exec:WORDS`, or the words after `--`.
    Exec(Vec<std::ffi::OsString>),
    /// `tcp://HOST:PORT`.
    Tcp {
        /// Name or address, without brackets.
        host: String,
        /// Port; 0 lets a listener choose.
        port: u16,
    },
    /// `unix:PATH`.
    Unix(PathBuf),
    /// `ws://HOST[:PORT][/PATH]` and `wss://…`.
    WebSocket {
        /// Whether TLS is under it.
        tls: bool,
        /// Name or address, without brackets.
        host: String,
        /// Port; 80 or 443 when left out, 0 lets a listener choose.
        port: u16,
        /// Path, `/acp` when left out.
        path: String,
    },
    /// A pair of links in this process, for tests.
    Memory(String),
}
