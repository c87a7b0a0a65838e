//! `--limit NAME=VALUE`: the bounds of [`Limits`], by name.
//!
//! Not here: what happens at a bound (see `wire::limits`).

use std::time::Duration;

use crate::wire::Limits;

/// The names, for `--help`.
pub(super) const HELP: &str = "\
Limits (--limit NAME=VALUE; sizes in bytes or with KiB, MiB, GiB; times in seconds or with ms):
  frame-from-child=64MiB    longest message of an agent we started; beyond it: discarded, error
                            -32056, the link closed after the third
  frame-from-network=16MiB  longest message from the network; as above
  nesting=128               deepest nesting; beyond it: error -32600
  header-bytes=32KiB        largest Content-Length header block; beyond it: the link is closed
  queue-frames=1024         messages that may wait for a side; at it: the other side is not read
  queue-bytes=256KiB        bytes that may wait for a side; at it: the other side is not read
  in-flight=16384           open requests of one side; beyond it: error -32053
  strays=100                lines in a row that are not JSON; at it: the agent is stopped
  connections=1024          clients at a time; beyond it: refused
  handshake=10              for TLS and the WebSocket handshake; after it: closed
  stop-grace=5              for each step of stopping an agent: stdin closed, SIGTERM, SIGKILL
  stderr-kept=64KiB         how much of an agent's stderr is kept";

/// One bound that was set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    bound: Bound,
    value: u64,
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    FrameFromChild,
    FrameFromNetwork,
    Nesting,
    HeaderBytes,
    QueueFrames,
    QueueBytes,
    InFlight,
    Strays,
    Connections,
    Handshake,
    StopGrace,
    StderrKept,
}

/// Reads `NAME=VALUE`.
pub(super) fn parse(text: &str) -> Result<Setting, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("expected NAME=VALUE, such as connections=100")?;
    let bound = match name {
        "frame-from-child" => Bound::FrameFromChild,
        "frame-from-network" => Bound::FrameFromNetwork,
        "nesting" => Bound::Nesting,
        "header-bytes" => Bound::HeaderBytes,
        "queue-frames" => Bound::QueueFrames,
        "queue-bytes" => Bound::QueueBytes,
        "in-flight" => Bound::InFlight,
        "strays" => Bound::Strays,
        "connections" => Bound::Connections,
        "handshake" => Bound::Handshake,
        "stop-grace" => Bound::StopGrace,
        "stderr-kept" => Bound::StderrKept,
        _ => {
            return Err(format!(
                "there is no limit called `{name}`; `acp-relay --help` lists them"
            ));
        }
    };
    let value = if bound.is_time() {
        milliseconds(value)
    } else {
        size(value)
    };
    let value = value.ok_or_else(|| format!("`{name}` takes {}", bound.form()))?;
    let range = bound.range();
    if !range.contains(&value) {
        return Err(format!(
            "`{name}` must be between {} and {}",
            range.start(),
            range.end()
        ));
    }
    Ok(Setting { bound, value })
}

impl Setting {
    pub(super) fn apply(self, limits: &mut Limits) {
        let count = usize::try_from(self.value).unwrap_or(usize::MAX);
        let time = Duration::from_millis(self.value);
        match self.bound {
            Bound::FrameFromChild => limits.frame_from_child = count,
            Bound::FrameFromNetwork => limits.frame_from_network = count,
            Bound::Nesting => limits.nesting = count,
            Bound::HeaderBytes => limits.header_bytes = count,
            Bound::QueueFrames => limits.queue_frames = count,
            Bound::QueueBytes => limits.queue_bytes = count,
            Bound::InFlight => limits.in_flight = count,
            Bound::Strays => limits.strays = count,
            Bound::Connections => limits.connections = count,
            Bound::Handshake => limits.handshake = time,
            Bound::StopGrace => limits.stop_grace = time,
            Bound::StderrKept => limits.stderr_kept = count,
        }
    }
}

impl Bound {
    const fn is_time(self) -> bool {
        matches!(self, Self::Handshake | Self::StopGrace)
    }

    const fn form(self) -> &'static str {
        if self.is_time() {
            "seconds, such as 5, or milliseconds, such as 500ms"
        } else {
            "a number, such as 1024 or 16MiB"
        }
    }

    /// What makes sense; offsets in a message are kept in 32 bits.
    const fn range(self) -> std::ops::RangeInclusive<u64> {
        match self {
            Self::FrameFromChild | Self::FrameFromNetwork => 1024..=(2 << 30),
            Self::Nesting => 8..=128,
            Self::HeaderBytes => 64..=(1 << 20),
            Self::QueueFrames
            | Self::QueueBytes
            | Self::InFlight
            | Self::Strays
            | Self::Connections => 1..=(1 << 30),
            Self::Handshake | Self::StopGrace => 0..=86_400_000,
            Self::StderrKept => 256..=(64 << 20),
        }
    }
}

fn size(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
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
