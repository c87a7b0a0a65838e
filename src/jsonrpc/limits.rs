//! Every bound on what peers send, keep open and take time for, each with its effect: name, kind,
//! default, range and meaning are declared here, and only here.
//!
//! Values that only we choose, such as the size of a buffer, are constants where they are used.

use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::parse_duration;

/// A number of things.
pub type Count = usize;
/// A number of bytes.
pub type Size = usize;
/// A length of time.
pub type Time = Duration;

/// Offsets in a message are stored in 32 bits.
const MESSAGE: RangeInclusive<u64> = 1024..=(2 << 30);
const ANY: RangeInclusive<u64> = 1..=(1 << 30);
/// In milliseconds.
const DAY: RangeInclusive<u64> = 0..=86_400_000;
/// The range of TCP keepalive, in milliseconds.
const KEEPALIVE: RangeInclusive<u64> = 1000..=86_400_000;

/// The declaration of a limit.
#[derive(Debug)]
pub struct Limit {
    /// Its name on the command line and in the configuration file.
    pub name: String,
    /// What is limited, and what happens at the limit.
    pub about: &'static str,
    /// The values allowed; of times, in milliseconds.
    pub range: RangeInclusive<u64>,
    /// Whether it applies before an agent is chosen, so that it cannot be set for one agent.
    pub is_of_listeners: bool,
    field: Field,
}

/// The field of a limit, and the form of its value.
#[derive(Clone, Copy, Debug)]
enum Field {
    Count(fn(&mut Limits) -> &mut usize),
    Size(fn(&mut Limits) -> &mut usize),
    Time(fn(&mut Limits) -> &mut Duration),
}

/// Makes the struct, its default, and the list of declarations.
macro_rules! limits {
    ($($(#[doc = $about:literal])+
        $name:ident: $kind:ident = $default:expr, in $range:expr $(, of $scope:ident)?;)+) => {
        /// The bounds of one relay process.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits {
            $($(#[doc = $about])+ pub $name: $kind,)+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        /// The declarations of all limits.
        pub static LIMITS: LazyLock<Vec<Limit>> = LazyLock::new(|| vec![$(Limit {
            name: stringify!($name).replace('_', "-"),
            about: concat!($($about),+).trim_ascii(),
            range: $range,
            is_of_listeners: !stringify!($($scope)?).is_empty(),
            field: Field::$kind(|limits| &mut limits.$name),
        },)+]);
    };
}

limits! {
    /// longest message of an agent we started, of the client on stdio, over ssh, and of the relay's own
    /// user at a Unix socket; beyond it: discarded, error -32056, the link closed after
    /// `oversized-messages`; it is announced to another relay, which does not send a longer one
    frame_from_child: Size = 64 << 20, in MESSAGE;
    /// longest message from the network otherwise; as above, but over a WebSocket: closed with 1009
    frame_from_network: Size = 16 << 20, in MESSAGE, of listeners;
    /// over-long messages of one link; at it: the link is closed
    oversized_messages: Count = 3, in ANY;
    // No code on a message's path recurses into it, so this costs no stack. Readers with a lower
    // limit, such as serde_json's 128, reject it themselves. The scanner keeps its place in 1024
    // bits.
    /// deepest nesting; beyond it: error -32600
    nesting: Count = 1024, in 8..=1024;
    /// longest id; beyond it: error -32600
    id: Size = 256, in 16..=(64 << 10);
    /// longest method name; beyond it: error -32600
    method: Size = 1024, in 16..=(64 << 10);
    /// largest Content-Length header block; beyond it: the link is closed
    header_bytes: Size = 32 << 10, in 64..=(1 << 20), of listeners;
    /// most fields in such a block; beyond it: the link is closed
    header_fields: Count = 64, in 1..=1024, of listeners;
    /// messages that may wait for a side; at it: the other side is not read
    queue_frames: Count = 1024, in ANY;
    /// bytes that may wait for a side; at it: the other side is not read
    queue_bytes: Size = 256 << 10, in ANY;
    /// for notifications of a session that the client does not know yet to wait for the answer to
    /// `session/new` or `session/fork`; after it, or beyond `queue-frames` or `queue-bytes`: passed on
    /// before the answer; 0s: never held
    hold_updates: Time = Duration::from_secs(60), in DAY;
    /// for the agent to end a turn after `session/cancel`, and again after each of its messages, two
    /// minutes at most; after it: the prompt is answered as cancelled in its place; 0s: never
    cancel_grace: Time = Duration::from_secs(30), in DAY;
    /// for an agent that owes the answer to `initialize`, `session/new`, `load`, `resume`, `fork` or
    /// `list` to send anything; after it: error -32055 in its place; 0s: never
    handshake_silence: Time = Duration::ZERO, in DAY;
    /// for an agent to send anything during a turn, while it does not wait itself; after it: the turn is
    /// cancelled; 0s: never
    turn_silence: Time = Duration::ZERO, in DAY;
    /// open requests of one side; beyond it: error -32053
    in_flight: Count = 1 << 14, in ANY;
    /// consecutive lines that are not JSON, and responses that match no request; at it: the agent is
    /// stopped, a client's link closed
    invalid_messages: Count = 100, in ANY;
    /// clients at a time; beyond it: error -32053 to the first request, and closed
    connections: Count = 1024, in ANY;
    /// for connecting, TLS and the WebSocket handshake; after it: closed
    handshake: Time = Duration::from_secs(10), in DAY, of listeners;
    /// for the machine at the other end of a socket to confirm what it was sent, or to accept more;
    /// after it: the connection is lost
    tcp_user_timeout: Time = Duration::from_secs(25), in KEEPALIVE;
    /// sockets of one address (of IPv6: one /64) that are not authenticated yet; beyond it, and
    /// beyond half of http-sockets for all addresses: closed
    unauthenticated_sockets: Count = 16, in ANY;
    /// wrong tokens of one address a minute; beyond it: 429 for wrong ones
    failures: Count = 5, in ANY;
    /// clients of one principal at a time, except the relay's own user; beyond it: error -32053 to
    /// the first request, and closed
    per_principal: Count = 64, in ANY;
    /// agents started for one principal a minute, except for the relay's own user; beyond it: as
    /// above
    agent_starts: Count = 10, in ANY;
    /// between two checks whether a client's credentials are still valid; when they are not: closed
    /// with 4401
    credential_check: Time = Duration::from_secs(60), in 10..=86_400_000;
    /// messages of one client a second, with five seconds' worth at once; beyond it: reading is
    /// delayed
    client_messages: Count = 1 << 30, in ANY;
    /// bytes of one client a second, with a second's worth at once; beyond it: as above
    client_bytes: Size = 1 << 30, in ANY;
    /// sockets of one HTTP listener, WebSockets apart; at it: new ones wait
    http_sockets: Count = 8192, in ANY, of listeners;
    /// requests and streams on one HTTP/2 socket; beyond it: refused
    http_requests: Count = 128, in ANY, of listeners;
    /// streams of one client for sessions that no message has named; beyond it: 404
    http_unknown_sessions: Count = 64, in ANY, of listeners;
    /// bytes that wait on an HTTP client's streams; at it: the agent is not read
    http_waiting: Size = 4 << 20, in ANY, of listeners;
    /// bytes kept for HTTP clients that reconnect; beyond it: 410 for the oldest
    http_replay: Size = 4 << 20, in ANY, of listeners;
    /// bytes of messages in transit to one HTTP listener; beyond it: 503, for large ones at three
    /// quarters of it
    http_bodies: Size = 256 << 20, in ANY, of listeners;
    /// for an HTTP request's body, plus a second for each KiB; after it: 408
    http_body: Time = Duration::from_secs(10), in DAY, of listeners;
    /// between two keepalive comments on a silent HTTP stream: 10 s after one is missing, the stream
    /// is lost and is opened again; for the peer of a WebSocket or of a resumable link to send anything
    /// before it gets a ping, and again for it to answer: then the connection is lost
    http_keepalive: Time = Duration::from_secs(10), in DAY, of listeners;
    /// for a session's stream to be opened; after it: the connection's stream carries it
    http_stream_open: Time = Duration::from_secs(5), in DAY, of listeners;
    /// for an HTTP socket or stream that accepts nothing; after it: closed; for an agent that accepts
    /// nothing; after it: 503
    http_write_timeout: Time = Duration::from_secs(30), in DAY, of listeners;
    /// for an HTTP client with no stream open and no request running; after it: it is gone, and its
    /// agent is stopped; for a server at whose port nothing listens; after it: it is lost
    http_grace: Time = Duration::from_secs(30), in DAY, of listeners;
    /// unfinished runs of an Agent Connect listener; beyond it: 503; of this and the next limits, a
    /// principal other than the relay's own user gets at most as much as is left for others
    agent_connect_runs: Count = 4096, in ANY;
    /// threads of such a listener in use; beyond it: the least recently used one of the principal that
    /// has the most is released
    agent_connect_sessions: Count = 4096, in ANY;
    /// threads it keeps; beyond it: 503
    agent_connect_threads: Count = 100_000, in ANY;
    /// runs it keeps; beyond it: the oldest finished ones of the same principal are deleted
    agent_connect_kept_runs: Count = 100_000, in ANY;
    /// bytes of threads and runs it keeps; beyond it: as above, then 503
    agent_connect_bytes: Size = 256 << 20, in 1024..=(1 << 40);
    /// for such a run; after it: cancelled, its status timeout
    agent_connect_run: Time = Duration::from_secs(86_400), in DAY;
    /// for the agent's answer to initialize there; after it: 503
    agent_connect_start: Time = Duration::from_secs(60), in DAY;
    /// for each step of stopping an agent: stdin closed, SIGTERM, SIGKILL; at most 1 s once `drain`
    /// is over
    stop_grace: Time = Duration::from_secs(5), in DAY;
    /// for running turns to end once the relay is asked to stop
    drain: Time = Duration::from_secs(25), in DAY;
    // A relay for one editor need not wait for load balancers.
    /// for listeners to stay open once the relay is asked to stop, so that balancers see that it
    /// refuses: 503, or error -32054 to the first request
    drain_min: Time = Duration::ZERO, in DAY, of listeners;
    /// for remaining data at the end: the output of an agent that has exited, when other processes
    /// hold its pipes open; a network client's last messages
    close_grace: Time = Duration::from_millis(500), in DAY;
    /// for a lost peer to be connected again while no request of the client is open: either one of a
    /// resumable link, or a client with --on-disconnect detach; after it: the conversation ends, and
    /// the agent is stopped
    reconnect_grace: Time = Duration::from_secs(600), in DAY;
    /// for a lost peer at most, also while a request of the client is open; as above
    reconnect_turn: Time = Duration::from_secs(86_400), in DAY;
    /// for connections to the relay that keeps a resumable link to be refused all the time, while
    /// nothing is known to be in between (ten times as long at a loopback address, where a tunnel may
    /// be down); after it: that relay and its agent are gone, and the conversation ends
    refused_grace: Time = Duration::from_secs(30), in DAY;
    /// bytes of a conversation kept for a client with --on-disconnect detach; beyond it: what the
    /// client has received is deleted, and an agent without a client is not read
    reconnect_bytes: Size = 8 << 20, in ANY;
    /// bytes of a resumable link that wait for a lost peer (512 MiB in all links, half of them of one
    /// principal); beyond it: the other side is not read
    link_bytes: Size = 64 << 20, in ANY;
    /// bytes that the translation of dialects and versions remembers of a conversation; beyond it:
    /// what is known of the tool calls, terminals, messages and plans of the least recent sessions
    /// is forgotten; where that is not enough, the agent is stopped
    translation_bytes: Size = 32 << 20, in (16 << 20)..=(1 << 30);
    /// bytes kept of an agent's stderr; older text is deleted
    stderr_bytes: Size = 64 << 10, in 256..=(64 << 20);
}

impl Limits {
    /// Those for messages of the relay's own user, which come from another process and not from the
    /// network.
    #[must_use]
    pub fn of_own_user(&self) -> Arc<Self> {
        Arc::new(Self {
            frame_from_network: self.frame_from_child.max(self.frame_from_network),
            ..self.clone()
        })
    }
}

impl Limit {
    /// The declaration of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        LIMITS.iter().find(|limit| limit.name == name)
    }

    /// Its value in `limits`; of times, in milliseconds.
    #[must_use]
    pub fn get(&self, limits: &Limits) -> u64 {
        let mut limits = limits.clone();
        match self.field {
            Field::Count(field) | Field::Size(field) => *field(&mut limits) as u64,
            Field::Time(field) => u64::try_from(field(&mut limits).as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Sets its value in `limits`; of times, in milliseconds.
    pub fn set(&self, limits: &mut Limits, value: u64) {
        match self.field {
            Field::Count(field) | Field::Size(field) => {
                *field(limits) = usize::try_from(value).unwrap_or(usize::MAX);
            }
            Field::Time(field) => *field(limits) = Duration::from_millis(value),
        }
    }

    /// Reads a value of its kind: a number, a size or a time.
    ///
    /// # Errors
    /// The form of its values, or their range.
    pub fn read(&self, text: &str) -> Result<u64, String> {
        let (value, form) = match self.field {
            Field::Count(_) => (text.parse().ok(), "a number, such as 100"),
            Field::Size(_) => (size(text), "a number of bytes, such as 1024 or 16MiB"),
            Field::Time(_) => {
                let form = "seconds, such as 5 or 5s, or milliseconds, such as 500ms";
                (milliseconds(text), form)
            }
        };
        let value = value.ok_or_else(|| format!("`{}` takes {form}", self.name))?;
        if !self.range.contains(&value) {
            let (least, most) = (self.text(*self.range.start()), self.text(*self.range.end()));
            return Err(format!(
                "`{}` must be between {least} and {most}",
                self.name
            ));
        }
        Ok(value)
    }

    /// A value of its kind as text.
    #[must_use]
    pub fn text(&self, value: u64) -> String {
        match self.field {
            Field::Count(_) => value.to_string(),
            Field::Size(_) => [(30, "GiB"), (20, "MiB"), (10, "KiB")]
                .into_iter()
                .find(|(bits, _)| value >= 1 << bits && value.is_multiple_of(1 << bits))
                .map_or_else(
                    || value.to_string(),
                    |(bits, unit)| format!("{}{unit}", value >> bits),
                ),
            Field::Time(_) if value.is_multiple_of(1000) => format!("{}s", value / 1000),
            Field::Time(_) => format!("{value}ms"),
        }
    }
}

/// Reads a number of bytes, with or without a unit.
#[must_use]
pub fn size(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Reads a duration; a number without a unit is in seconds.
fn milliseconds(text: &str) -> Option<u64> {
    let time = parse_duration(text).or_else(|_| parse_duration(&format!("{text}s")));
    u64::try_from(time.ok()?.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_range_and_survives_as_text() {
        for limit in LIMITS.iter() {
            let mut limits = Limits::default();
            let default = limit.get(&limits);
            for value in [default, *limit.range.start(), *limit.range.end()] {
                assert_eq!(limit.read(&limit.text(value)), Ok(value), "{limit:?}");
                limit.set(&mut limits, value);
                assert_eq!(limit.get(&limits), value, "{limit:?}");
            }
        }
    }
}
