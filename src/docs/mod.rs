//! The manual: a page per topic, which `acp-relay help TOPIC` prints.
//!
//! A page is a Markdown file here and a module of these docs. `tests/it/manual.rs` compares the
//! names in the pages with those of the program.

/// A page of the manual.
#[derive(Clone, Copy, Debug)]
pub struct Topic {
    /// Its name, and that of its file.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub about: &'static str,
    /// The page, in Markdown.
    pub text: &'static str,
}

macro_rules! topics {
    ($($module:ident $name:literal $about:literal)*) => {
        $(
            #[doc = include_str!(concat!(env!("OUT_DIR"), "/docs/", $name, ".md"))]
            pub mod $module {}
        )*

        /// All pages, in the order in which they are listed.
        pub const TOPICS: &[Topic] = &[$(Topic {
            name: $name,
            about: $about,
            text: include_str!(concat!($name, ".md")),
        },)*];
    };
}

topics! {
    install "install" "packages, platforms, and a first try without an editor"
    editors "editors" "set up an editor"
    remote "remote" "reach an agent on another machine, or let others reach yours"
    links "links" "how a conversation between two relays outlives its connections"
    cluster "cluster" "agents on many machines behind one address, on NATS"
    security "security" "who is admitted, and what a remote agent may do on this machine"
    dialects "dialects" "translate between forms of the protocol; mapping tables"
    versions "versions" "a client of ACP v1 with an agent of v2, and the reverse"
    recording "recording" "record, inspect, view, check and replay conversations"
    operations "operations" "configuration file, systemd, proxies, metrics, traces, log"
    agent_connect "agent-connect" "AGNTCY's Agent Connect Protocol, as a server and as a client"
    troubleshooting "troubleshooting" "errors, and what to do about them"
    reference "reference" "endpoints, flags, variables, limits, exit codes, error codes"
    metrics "metrics" "every metric"
    log "log" "the members of a JSON log line"
    secrets "secrets" "which secrets are redacted in recordings, and which are not found"
    compatibility "compatibility" "agents and clients that were tested; speed"
}
