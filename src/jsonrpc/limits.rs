//! Every bound on what peers send, keep open and take time for, each with its effect.
//!
//! Values that only we choose, such as the size of a buffer, are constants where they are used.

use std::time::Duration;

/// The bounds of one relay process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest message from a process we started, in bytes. Beyond it: discarded to its end in
    /// constant memory, error −32056, the link closed after [`Limits::oversized_messages`].
    pub frame_from_child: usize,
    /// Longest message from the network, in bytes. Beyond it: as above; over a WebSocket closed
    /// with 1009.
    pub frame_from_network: usize,
    /// Deepest nesting of arrays and objects. Beyond it: error −32600, the message skipped.
    ///
    /// No code on a message's path recurses into it, so this costs no stack. Readers with a lower
    /// limit, such as serde_json's 128, reject it themselves.
    pub nesting: usize,
    /// Longest id, in bytes as spelled. Beyond it: error −32600, the message skipped.
    pub id: usize,
    /// Longest method name, in bytes. Beyond it: error −32600, the message skipped.
    pub method: usize,
    /// Largest header block of a `Content-Length` message, in bytes. Beyond it: the link is closed.
    pub header_bytes: usize,
    /// Most fields in such a header block. Beyond it: the link is closed.
    pub header_fields: usize,
    /// Messages that may wait for one side. At it: the other side is not read.
    pub queue_frames: usize,
    /// Bytes that may wait for one side; one message of any permitted size always fits.
    /// At it: the other side is not read.
    pub queue_bytes: usize,
    /// Requests of one side that may await their answer. Beyond it: error −32053.
    pub in_flight: usize,
    /// Over-long messages of one link. At it: the link is closed.
    pub oversized_messages: usize,
    /// Consecutive lines from an agent that are not JSON. At it: the agent is stopped, error
    /// −32051. Also, answers of one side that match no request. At it: that side is treated so, or
    /// its link closed.
    pub strays: usize,
    /// Client connections served at a time. Beyond it: error −32053 to the first request, and
    /// closed.
    pub connections: usize,
    /// Time a new connection has for TLS and the WebSocket handshake. After it: closed.
    pub handshake: Duration,
    /// Time the other end of a socket may confirm nothing of what it is sent, or have no room for
    /// it. After it: the connection counts as lost.
    pub silence: Duration,
    /// Sockets of one address that have not authenticated. Beyond it: closed.
    pub unauthenticated_sockets: usize,
    /// Wrong tokens of one address a minute. Beyond it: 429 for wrong ones.
    pub failures: usize,
    /// Client connections, and so agents, of one principal at a time, except the relay's own user.
    /// Beyond it: error −32053 to the first request, and closed.
    pub per_principal: usize,
    /// Agents started for one principal a minute, except the relay's own user. Beyond it: as above.
    pub spawns: usize,
    /// Time between two looks whether what let a client in is still good. When it is not: closed
    /// with 4401.
    pub recheck: Duration,
    /// Messages of one client a second, with five seconds' worth at once. Beyond it: read later.
    pub client_messages: usize,
    /// Bytes of one client a second, with a second's worth at once. Beyond it: read later.
    pub client_bytes: usize,
    /// Sockets of one HTTP listener at a time, WebSockets apart. At it: new ones wait.
    pub http_sockets: usize,
    /// Requests at a time on one HTTP/2 socket, open streams included. Beyond it: refused.
    pub http_requests: usize,
    /// Streams an HTTP client may hold open for unknown sessions. Beyond it: 404.
    pub http_unknown_sessions: usize,
    /// Bytes that may wait to be sent on an HTTP client's streams. At it: the agent is not read.
    pub http_waiting: usize,
    /// Bytes that an HTTP client's streams keep, to send them again after a reconnect. Beyond it:
    /// the oldest are dropped, and requests for them are answered with 410.
    pub http_replay: usize,
    /// Bytes of all request bodies that one HTTP listener is receiving; twice the longest message
    /// always fits. Beyond it: 503; large ones at three quarters of it.
    pub http_bodies: usize,
    /// Time an HTTP request's body may take, besides a second for each KiB. After it: 408.
    pub http_body: Duration,
    /// Time between two keep-alives on an idle HTTP stream. Also the time a WebSocket peer may send
    /// nothing before it gets a ping, and again before it counts as lost.
    pub http_keepalive: Duration,
    /// Time a session's messages wait for a stream of their own before they are sent on the
    /// connection's.
    pub http_unopened: Duration,
    /// Time without progress: an HTTP socket or stream that takes nothing is closed after it;
    /// requests for an agent that takes nothing are answered with 503 after it.
    pub http_stall: Duration,
    /// Time an HTTP client may have neither a stream open nor a request running. After it: it
    /// counts as gone, and its agent is stopped.
    pub http_grace: Duration,
    /// Runs of an Agent Connect listener that are not over, waiting ones included. Beyond it: 503.
    pub agent_connect_runs: usize,
    /// Threads of such a listener that are in use, with open sessions. Beyond it: the least
    /// recently used one is dropped, or 503 when all of them are busy.
    pub agent_connect_sessions: usize,
    /// Threads such a listener keeps. Beyond it: 503.
    pub agent_connect_threads: usize,
    /// Runs such a listener keeps. Beyond it: the oldest finished ones are dropped.
    pub agent_connect_kept: usize,
    /// Time such a run may take, waiting included. After it: cancelled, its status timeout.
    pub agent_connect_run: Duration,
    /// Time its agent has to answer `initialize`. After it: 503.
    pub agent_connect_start: Duration,
    /// Time each step of stopping an agent takes: stdin closed, then SIGTERM, then SIGKILL; at most
    /// a second once [`Limits::drain`] is over.
    pub stop_grace: Duration,
    /// Time running turns may take to end once the relay is asked to stop.
    pub drain: Duration,
    /// Time listeners stay open once the relay is asked to stop, so that load balancers see it
    /// refuse: 503, or error −32054 to the first request.
    pub drain_min: Duration,
    /// Time for what is still in transit at the end: in the pipes of an exited agent that other
    /// processes hold open, and from a network client that has not seen our end of stream yet.
    pub close_grace: Duration,
    /// Time an idle agent is kept for a client whose connection broke. After it: stopped.
    pub reconnect_grace: Duration,
    /// Time a working agent is kept for such a client. After it: stopped.
    pub reconnect_turn: Duration,
    /// Bytes of a conversation that are kept for a client that may reconnect. Beyond it: what the
    /// client has seen is dropped, and an agent without a connected client is not read.
    pub reconnect_bytes: usize,
    /// Bytes of an agent's stderr that are kept; older text is dropped.
    pub stderr_kept: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_from_child: 64 << 20,
            frame_from_network: 16 << 20,
            nesting: 1024,
            id: 256,
            method: 1024,
            header_bytes: 32 << 10,
            header_fields: 64,
            queue_frames: 1024,
            queue_bytes: 256 << 10,
            in_flight: 1 << 14,
            oversized_messages: 3,
            strays: 100,
            connections: 1024,
            handshake: Duration::from_secs(10),
            silence: Duration::from_secs(25),
            unauthenticated_sockets: 16,
            failures: 5,
            per_principal: 64,
            spawns: 10,
            recheck: Duration::from_secs(60),
            client_messages: 1 << 30,
            client_bytes: 1 << 30,
            http_sockets: 8192,
            http_requests: 128,
            http_unknown_sessions: 64,
            http_waiting: 4 << 20,
            http_replay: 4 << 20,
            http_bodies: 256 << 20,
            http_body: Duration::from_secs(10),
            http_keepalive: Duration::from_secs(10),
            http_unopened: Duration::from_secs(5),
            http_stall: Duration::from_secs(30),
            http_grace: Duration::from_secs(30),
            agent_connect_runs: 4096,
            agent_connect_sessions: 4096,
            agent_connect_threads: 100_000,
            agent_connect_kept: 100_000,
            agent_connect_run: Duration::from_secs(86_400),
            agent_connect_start: Duration::from_secs(60),
            stop_grace: Duration::from_secs(5),
            drain: Duration::from_secs(25),
            // A relay for one editor need not wait for load balancers.
            drain_min: Duration::ZERO,
            close_grace: Duration::from_millis(500),
            reconnect_grace: Duration::from_secs(600),
            reconnect_turn: Duration::from_secs(86_400),
            reconnect_bytes: 8 << 20,
            stderr_kept: 64 << 10,
        }
    }
}
