//! `--limit NAME=VALUE`: the limits of [`Limits`], by name. `jsonrpc::limits` says what happens at
//! each of them.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::config::nearest;
use super::renamed;
use crate::jsonrpc::Limits;

/// Every limit that can be set.
#[rustfmt::skip]
const BOUNDS: &[Bound] = &[
    Bound { name: "frame-from-child", field: Field::Size(|of| &mut of.frame_from_child), range: MESSAGE,
        about: "longest message of an agent we started, or of the client on stdio; beyond it: \
                discarded, error -32056, the link closed after `oversized-messages`" },
    Bound { name: "frame-from-network", field: Field::Size(|of| &mut of.frame_from_network), range: MESSAGE,
        about: "longest message from the network; as above, but over a WebSocket: closed with 1009" },
    Bound { name: "oversized-messages", field: Field::Count(|of| &mut of.oversized_messages), range: ANY,
        about: "over-long messages of one link; at it: the link is closed" },
    // The scanner keeps its place in 1024 bits.
    Bound { name: "nesting", field: Field::Count(|of| &mut of.nesting), range: 8..=1024,
        about: "deepest nesting; beyond it: error -32600" },
    Bound { name: "id", field: Field::Size(|of| &mut of.id), range: 16..=(64 << 10),
        about: "longest id; beyond it: error -32600" },
    Bound { name: "method", field: Field::Size(|of| &mut of.method), range: 16..=(64 << 10),
        about: "longest method name; beyond it: error -32600" },
    Bound { name: "header-bytes", field: Field::Size(|of| &mut of.header_bytes), range: 64..=(1 << 20),
        about: "largest Content-Length header block; beyond it: the link is closed" },
    Bound { name: "header-fields", field: Field::Count(|of| &mut of.header_fields), range: 1..=1024,
        about: "most fields in such a block; beyond it: the link is closed" },
    Bound { name: "queue-frames", field: Field::Count(|of| &mut of.queue_frames), range: ANY,
        about: "messages that may wait for a side; at it: the other side is not read" },
    Bound { name: "queue-bytes", field: Field::Size(|of| &mut of.queue_bytes), range: ANY,
        about: "bytes that may wait for a side; at it: the other side is not read" },
    Bound { name: "in-flight", field: Field::Count(|of| &mut of.in_flight), range: ANY,
        about: "open requests of one side; beyond it: error -32053" },
    Bound { name: "strays", field: Field::Count(|of| &mut of.strays), range: ANY,
        about: "consecutive lines that are not JSON, and responses that match no request; at it: \
                the agent is stopped, a client's link closed" },
    Bound { name: "connections", field: Field::Count(|of| &mut of.connections), range: ANY,
        about: "clients at a time; beyond it: error -32053 to the first request, and closed" },
    Bound { name: "handshake", field: Field::Time(|of| &mut of.handshake), range: DAY,
        about: "for connecting, TLS and the WebSocket handshake; after it: closed" },
    Bound { name: "silence", field: Field::Time(|of| &mut of.silence), range: SILENCE,
        about: "for the machine at the other end of a socket to confirm what it was sent, or to \
                accept more; after it: the connection is lost" },
    Bound { name: "unauthenticated-sockets", field: Field::Count(|of| &mut of.unauthenticated_sockets), range: ANY,
        about: "sockets of one address (of IPv6: one /64) that are not authenticated yet; beyond it, \
                and beyond half of http-sockets for all addresses: closed" },
    Bound { name: "failures", field: Field::Count(|of| &mut of.failures), range: ANY,
        about: "wrong tokens of one address a minute; beyond it: 429 for wrong ones" },
    Bound { name: "per-principal", field: Field::Count(|of| &mut of.per_principal), range: ANY,
        about: "clients of one principal at a time, except the relay's own user; beyond it: error \
                -32053 to the first request, and closed" },
    Bound { name: "spawns", field: Field::Count(|of| &mut of.spawns), range: ANY,
        about: "agents started for one principal a minute, except for the relay's own user; beyond \
                it: as above" },
    Bound { name: "recheck", field: Field::Time(|of| &mut of.recheck), range: 10..=86_400_000,
        about: "between two checks whether a client's credentials are still valid; when they are \
                not: closed with 4401" },
    Bound { name: "client-messages", field: Field::Count(|of| &mut of.client_messages), range: ANY,
        about: "messages of one client a second, with five seconds' worth at once; beyond it: \
                reading is delayed" },
    Bound { name: "client-bytes", field: Field::Size(|of| &mut of.client_bytes), range: ANY,
        about: "bytes of one client a second, with a second's worth at once; beyond it: as above" },
    Bound { name: "http-sockets", field: Field::Count(|of| &mut of.http_sockets), range: ANY,
        about: "sockets of one HTTP listener, WebSockets apart; at it: new ones wait" },
    Bound { name: "http-requests", field: Field::Count(|of| &mut of.http_requests), range: ANY,
        about: "requests and streams on one HTTP/2 socket; beyond it: refused" },
    Bound { name: "http-unknown-sessions", field: Field::Count(|of| &mut of.http_unknown_sessions), range: ANY,
        about: "streams of one client for sessions that no message has named; beyond it: 404" },
    Bound { name: "http-waiting", field: Field::Size(|of| &mut of.http_waiting), range: ANY,
        about: "bytes that wait on an HTTP client's streams; at it: the agent is not read" },
    Bound { name: "http-replay", field: Field::Size(|of| &mut of.http_replay), range: ANY,
        about: "bytes kept for HTTP clients that reconnect; beyond it: 410 for the oldest" },
    Bound { name: "http-bodies", field: Field::Size(|of| &mut of.http_bodies), range: ANY,
        about: "bytes of messages in transit to one HTTP listener; beyond it: 503, for large ones \
                at three quarters of it" },
    Bound { name: "http-body", field: Field::Time(|of| &mut of.http_body), range: DAY,
        about: "for an HTTP request's body, plus a second for each KiB; after it: 408" },
    Bound { name: "http-keepalive", field: Field::Time(|of| &mut of.http_keepalive), range: DAY,
        about: "between two keepalive comments on a silent HTTP stream: 10 s after one is missing, \
                the stream is lost and is opened again; for a WebSocket peer to send anything \
                before it gets a ping, and again for it to answer: then the connection is lost" },
    Bound { name: "http-unopened", field: Field::Time(|of| &mut of.http_unopened), range: DAY,
        about: "for a session's stream to be opened; after it: the connection's stream carries it" },
    Bound { name: "http-stall", field: Field::Time(|of| &mut of.http_stall), range: DAY,
        about: "for an HTTP socket or stream that accepts nothing; after it: closed; for an agent \
                that accepts nothing; after it: 503" },
    Bound { name: "http-grace", field: Field::Time(|of| &mut of.http_grace), range: DAY,
        about: "for an HTTP client with no stream open and no request running; after it: it is \
                gone, and its agent is stopped; for a server at whose port nothing listens; after \
                it: it is lost" },
    Bound { name: "agent-connect-runs", field: Field::Count(|of| &mut of.agent_connect_runs), range: ANY,
        about: "unfinished runs of an Agent Connect listener; beyond it: 503" },
    Bound { name: "agent-connect-sessions", field: Field::Count(|of| &mut of.agent_connect_sessions), range: ANY,
        about: "threads of such a listener in use; beyond it: the least recently used one is \
                released" },
    Bound { name: "agent-connect-threads", field: Field::Count(|of| &mut of.agent_connect_threads), range: ANY,
        about: "threads it keeps; beyond it: 503" },
    Bound { name: "agent-connect-kept", field: Field::Count(|of| &mut of.agent_connect_kept), range: ANY,
        about: "runs it keeps; beyond it: the oldest finished ones are deleted" },
    Bound { name: "agent-connect-run", field: Field::Time(|of| &mut of.agent_connect_run), range: DAY,
        about: "for such a run; after it: cancelled, its status timeout" },
    Bound { name: "agent-connect-start", field: Field::Time(|of| &mut of.agent_connect_start), range: DAY,
        about: "for the agent's answer to initialize there; after it: 503" },
    Bound { name: "stop-grace", field: Field::Time(|of| &mut of.stop_grace), range: DAY,
        about: "for each step of stopping an agent: stdin closed, SIGTERM, SIGKILL; at most 1 s \
                once `drain` is over" },
    Bound { name: "drain", field: Field::Time(|of| &mut of.drain), range: DAY,
        about: "for running turns to end once the relay is asked to stop" },
    Bound { name: "drain-min", field: Field::Time(|of| &mut of.drain_min), range: DAY,
        about: "for listeners to stay open once the relay is asked to stop, so that balancers see \
                that it refuses: 503, or error -32054 to the first request" },
    Bound { name: "close-grace", field: Field::Time(|of| &mut of.close_grace), range: DAY,
        about: "for remaining data at the end: the output of an agent that has exited, when other \
                processes hold its pipes open; a network client's last messages" },
    Bound { name: "reconnect-grace", field: Field::Time(|of| &mut of.reconnect_grace), range: DAY,
        about: "for a client to reconnect to an idle agent (--on-disconnect detach); after it: the \
                agent is stopped" },
    Bound { name: "reconnect-turn", field: Field::Time(|of| &mut of.reconnect_turn), range: DAY,
        about: "for a client to reconnect to an agent in a turn; as above" },
    Bound { name: "reconnect-bytes", field: Field::Size(|of| &mut of.reconnect_bytes), range: ANY,
        about: "bytes of a conversation kept for a client that may reconnect; beyond it: what the \
                client has received is deleted, and an agent without a client is not read" },
    Bound { name: "stderr-kept", field: Field::Size(|of| &mut of.stderr_kept), range: 256..=(64 << 20),
        about: "bytes kept of an agent's stderr; older text is deleted" },
];

/// Offsets in a message are stored in 32 bits.
const MESSAGE: RangeInclusive<u64> = 1024..=(2 << 30);
const ANY: RangeInclusive<u64> = 1..=(1 << 30);
/// In milliseconds.
const DAY: RangeInclusive<u64> = 0..=86_400_000;

/// The range of TCP keepalive, in milliseconds.
const SILENCE: RangeInclusive<u64> = 1000..=86_400_000;

/// Widest line of `--help`.
const WIDTH: usize = 98;

/// One limit.
#[derive(Debug)]
struct Bound {
    /// The field's name, with `-` for `_`.
    name: &'static str,
    field: Field,
    /// The values allowed; of times, in milliseconds.
    range: RangeInclusive<u64>,
    /// What is limited, and what happens at the limit.
    about: &'static str,
}

/// The field of a limit, and the form of its value.
#[derive(Clone, Copy, Debug)]
enum Field {
    Count(fn(&mut Limits) -> &mut usize),
    Size(fn(&mut Limits) -> &mut usize),
    Time(fn(&mut Limits) -> &mut Duration),
}

/// A limit and its new value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    name: &'static str,
    field: Field,
    value: u64,
}

/// All names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    BOUNDS.iter().map(|bound| bound.name)
}

/// The name and value of every limit in `limits`.
pub(super) fn spelled(limits: &Limits) -> Vec<(&'static str, String)> {
    let mut limits = limits.clone();
    let each = BOUNDS.iter().map(|bound| {
        let value = bound.field.get(&mut limits);
        (bound.name, bound.field.spelled(value))
    });
    each.collect()
}

/// Whether a limit applies before an agent is chosen, so that it cannot be set for one agent.
pub(super) fn is_of_listeners(name: &str) -> bool {
    let of_listeners = [
        "drain-min",
        "frame-from-network",
        "handshake",
        "header-bytes",
        "header-fields",
    ];
    name.starts_with("http-") || of_listeners.contains(&name)
}

/// The names, defaults and meanings, for `--help`.
pub(super) fn help() -> String {
    let mut text = "Limits (--limit NAME=VALUE; sizes in bytes or with KiB, MiB, GiB; times \
                    with s or ms, or in seconds):"
        .to_owned();
    let mut defaults = Limits::default();
    let spelled: Vec<String> = BOUNDS
        .iter()
        .map(|bound| {
            let value = bound.field.get(&mut defaults);
            format!("{}={}", bound.name, bound.field.spelled(value))
        })
        .collect();
    let column = spelled.iter().map(String::len).max().unwrap_or(0) + 4;
    for (bound, spelled) in BOUNDS.iter().zip(&spelled) {
        text.push_str(&format!("\n  {spelled:width$}", width = column - 2));
        let mut at = column;
        for (index, word) in bound.about.split_whitespace().enumerate() {
            if at + 1 + word.chars().count() > WIDTH {
                text.push_str(&format!("\n{:column$}", ""));
                at = column;
            } else if index > 0 {
                text.push(' ');
                at += 1;
            }
            text.push_str(word);
            at += word.chars().count();
        }
    }
    text
}

/// Parses `NAME=VALUE`.
pub(super) fn parse(text: &str) -> Result<Setting, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("expected NAME=VALUE, such as connections=100")?;
    let Some(Bound {
        name, field, range, ..
    }) = BOUNDS.iter().find(|bound| bound.name == name)
    else {
        if let Some(what) = renamed::limit(name) {
            return Err(what);
        }
        let remedy = match nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`acp-relay --help` lists them".to_owned(),
        };
        return Err(format!("there is no limit called `{name}`; {remedy}"));
    };
    let value = field
        .read(value)
        .ok_or_else(|| format!("`{name}` takes {}", field.form()))?;
    if !range.contains(&value) {
        let (least, most) = (field.spelled(*range.start()), field.spelled(*range.end()));
        return Err(format!("`{name}` must be between {least} and {most}"));
    }
    let field = *field;
    Ok(Setting { name, field, value })
}

impl Setting {
    /// The limit's name.
    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    /// Its value as text.
    pub(super) fn spelled(&self) -> String {
        self.field.spelled(self.value)
    }

    pub(super) fn apply(self, limits: &mut Limits) {
        match self.field {
            Field::Count(field) | Field::Size(field) => {
                *field(limits) = usize::try_from(self.value).unwrap_or(usize::MAX);
            }
            Field::Time(field) => *field(limits) = Duration::from_millis(self.value),
        }
    }
}

impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.value) == (other.name, other.value)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = \"{}\"", self.name, self.field.spelled(self.value))
    }
}

impl Field {
    fn get(self, limits: &mut Limits) -> u64 {
        match self {
            Self::Count(field) | Self::Size(field) => *field(limits) as u64,
            Self::Time(field) => u64::try_from(field(limits).as_millis()).unwrap_or(u64::MAX),
        }
    }

    fn read(self, text: &str) -> Option<u64> {
        match self {
            Self::Count(_) => text.parse().ok(),
            Self::Size(_) => size(text),
            Self::Time(_) => milliseconds(text),
        }
    }

    const fn form(self) -> &'static str {
        match self {
            Self::Count(_) => "a number, such as 100",
            Self::Size(_) => "a number of bytes, such as 1024 or 16MiB",
            Self::Time(_) => "seconds, such as 5 or 5s, or milliseconds, such as 500ms",
        }
    }

    fn spelled(self, value: u64) -> String {
        match self {
            Self::Count(_) => value.to_string(),
            Self::Size(_) => [(30, "GiB"), (20, "MiB"), (10, "KiB")]
                .into_iter()
                .find(|(bits, _)| value >= 1 << bits && value.is_multiple_of(1 << bits))
                .map_or_else(
                    || value.to_string(),
                    |(bits, unit)| format!("{}{unit}", value >> bits),
                ),
            Self::Time(_) if value.is_multiple_of(1000) => format!("{}s", value / 1000),
            Self::Time(_) => format!("{value}ms"),
        }
    }
}

/// Parses a number of bytes.
///
/// # Errors
/// What was expected.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    size(text).ok_or_else(|| "expected a number of bytes, such as 512MiB or 10GiB".to_owned())
}

fn size(text: &str) -> Option<u64> {
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

fn milliseconds(text: &str) -> Option<u64> {
    if let Some(number) = text.strip_suffix("ms") {
        return number.parse().ok();
    }
    let seconds: f64 = text.strip_suffix('s').unwrap_or(text).parse().ok()?;
    (seconds.is_finite() && (0.0..=86_400.0).contains(&seconds))
        .then(|| Duration::from_secs_f64(seconds).as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_name() {
        let fields = format!("{:#?}", Limits::default());
        let mut fields: Vec<String> = fields
            .lines()
            .filter_map(|line| line.strip_prefix("    ")?.split_once(':'))
            .map(|(field, _)| field.replace('_', "-"))
            .collect();
        let mut names: Vec<&str> = BOUNDS.iter().map(|bound| bound.name).collect();
        fields.sort_unstable();
        names.sort_unstable();
        assert_eq!(names, fields);
    }

    #[test]
    fn every_name_sets_its_own_field() {
        for bound in BOUNDS {
            let mut limits = Limits::default();
            let (least, other) = (*bound.range.start(), *bound.range.end());
            let before = bound.field.get(&mut limits);
            let value = if before == least { other } else { least };
            let text = format!("{}={}", bound.name, bound.field.spelled(value));
            parse(&text).expect(&text).apply(&mut limits);
            assert_eq!(bound.field.get(&mut limits), value, "{text}");
            let changed = format!("{limits:#?}");
            let default = format!("{:#?}", Limits::default());
            let lines: Vec<_> = (changed.lines().zip(default.lines()))
                .filter(|(now, then)| now != then)
                .collect();
            assert_eq!(lines.len(), 1, "{text}");
            let field = bound.name.replace('-', "_");
            assert!(lines[0].0.trim_start().starts_with(&field), "{lines:?}");
        }
    }

    #[test]
    fn invalid_limit_is_explained() {
        for (text, expected) in [
            ("connections", "NAME=VALUE"),
            ("conections=1", "no limit called"),
            ("connections=1KiB", "takes a number"),
            ("connections=0", "between 1 and"),
            ("queue-bytes=x", "bytes"),
            ("handshake=-1", "seconds"),
            ("handshake=100000", "seconds"),
            ("drain=86400001ms", "between 0s and 86400s"),
            ("frame-from-child=4GiB", "between 1KiB and 2GiB"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
