//! Every bound on what peers send, keep open and take their time for, each with the behaviour it
//! causes.
//!
//! Not here: how they are read from the command line (see `cli::limits`), and what only we choose,
//! such as the size of a buffer or the patience of a farewell (a constant where it is used).

use std::time::Duration;

/// The bounds of one relay process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest message from a process we started, in bytes. Beyond it: discarded to its end in
    /// constant memory, error −32056, the link closed after [`Limits::offences`].
    pub frame_from_child: usize,
    /// Longest message from the network, in bytes. Beyond it: as above; over a WebSocket closed with
    /// 1009.
    pub frame_from_network: usize,
    /// Deepest nesting of arrays and objects. Beyond it: error −32600, the message skipped.
    ///
    /// Nothing on a message's way recurses into it, so this costs no stack; readers with a limit
    /// of 128 (serde_json's) say so themselves, and a verbatim relay is not to say it for them.
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
    pub offences: usize,
    /// Lines in a row from an agent that are not JSON. At it: the agent is stopped, error −32051.
    /// Also, answers of one side that nobody waits for. At it: that side is treated so, or its link
    /// closed.
    pub strays: usize,
    /// Client connections served at a time. Beyond it: error −32053 to the first request, and
    /// closed.
    pub connections: usize,
    /// Time a new connection has for TLS and the WebSocket handshake. After it: closed.
    pub handshake: Duration,
    /// Time the machine at the other end of a socket may confirm nothing of what it is sent, or have
    /// no room for it. After it: the connection has broken off.
    pub silence: Duration,
    /// Sockets of one address that have not shown who they are. Beyond it: closed.
    pub strangers: usize,
    /// Wrong tokens of one address a minute. Beyond it: 429 for wrong ones.
    pub failures: usize,
    /// Client connections, and so agents, of one principal at a time, but of the relay's own user.
    /// Beyond it: error −32053 to the first request, and closed.
    pub of_principal: usize,
    /// Agents started for one principal a minute, but for the relay's own user. Beyond it: as above.
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
    /// Streams an HTTP client may hold open for sessions nobody has named. Beyond it: 404.
    pub http_strangers: usize,
    /// Bytes that may wait for an HTTP client to take them off its streams. At it: the agent is
    /// not read.
    pub http_waiting: usize,
    /// Bytes an HTTP client's streams keep, to be sent again to one that comes back.
    /// Beyond it: the oldest are forgotten, and asking for them is answered with 410.
    pub http_replay: usize,
    /// Bytes of all the messages that are being sent to one HTTP listener, until they have found
    /// their place; twice the longest message always fits. Beyond it: 503; large ones at three
    /// quarters of it.
    pub http_bodies: usize,
    /// Time an HTTP request's body may take, besides a second for each KiB. After it: 408.
    pub http_body: Duration,
    /// Time between two signs of life on an HTTP stream with nothing to say. Also the time a
    /// WebSocket peer may send nothing before it gets a ping, and again before it counts as lost.
    pub http_keepalive: Duration,
    /// Time a session's messages wait for a stream of its own before the connection's carries them.
    pub http_unopened: Duration,
    /// Time nothing may move: on an HTTP socket or stream that takes nothing, closed after it; for
    /// an agent that takes nothing, 503 after it.
    pub http_stall: Duration,
    /// Time an HTTP client may have neither a stream open nor a request running. After it: it has
    /// left, and its agent is stopped.
    pub http_grace: Duration,
    /// Runs of an Agent Connect listener that are not over, those that wait included. Beyond it:
    /// 503.
    pub agent_connect_runs: usize,
    /// Threads of such a listener that are in use, their sessions open. Beyond it: the one that was
    /// not used for longest is given up, or 503 when all of them are busy.
    pub agent_connect_sessions: usize,
    /// Threads such a listener keeps. Beyond it: 503.
    pub agent_connect_threads: usize,
    /// Runs such a listener keeps. Beyond it: the oldest that are over are forgotten.
    pub agent_connect_kept: usize,
    /// Time such a run may take, with all that it waits for. After it: cancelled, its status
    /// timeout.
    pub agent_connect_run: Duration,
    /// Time an agent has for the answer to `initialize` there. After it: 503.
    pub agent_connect_start: Duration,
    /// Time each step of stopping an agent takes: stdin closed, then SIGTERM, then SIGKILL; at most a
    /// second once [`Limits::drain`] is over.
    pub stop_grace: Duration,
    /// Time running turns may take to end once the relay is told to stop.
    pub drain: Duration,
    /// Time listeners stay open once the relay is told to stop, so that balancers see it refuse:
    /// 503, or error −32054 to the first request.
    pub drain_min: Duration,
    /// Time for what is still on its way when all is over: in the pipes of an exited agent that
    /// other processes hold open, and from a network client that has not seen our end yet.
    pub last_words: Duration,
    /// Time an idle agent is kept for a client whose connection broke. After it: stopped.
    pub return_grace: Duration,
    /// Time an agent that is at work is kept for such a client. After it: stopped.
    pub return_turn: Duration,
    /// How much of a conversation is kept for a client that may come back, in bytes. Beyond it: what
    /// the client has seen is forgotten, and an agent whose client is away is not read.
    pub kept_for_return: usize,
    /// How much of an agent's stderr is kept, in bytes; older text is forgotten.
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
            offences: 3,
            strays: 100,
            connections: 1024,
            handshake: Duration::from_secs(10),
            silence: Duration::from_secs(25),
            strangers: 16,
            failures: 5,
            of_principal: 64,
            spawns: 10,
            recheck: Duration::from_secs(60),
            client_messages: 1 << 30,
            client_bytes: 1 << 30,
            http_sockets: 8192,
            http_requests: 128,
            http_strangers: 64,
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
            // Who serves one editor need not wait for balancers.
            drain_min: Duration::ZERO,
            last_words: Duration::from_millis(500),
            return_grace: Duration::from_secs(600),
            return_turn: Duration::from_secs(86_400),
            kept_for_return: 8 << 20,
            stderr_kept: 64 << 10,
        }
    }
}
