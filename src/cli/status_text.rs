//! The status as text: what `status` prints, and each screen of `top`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::console::counted;

/// The columns beside the client's, which takes the remaining width: width, and whether
/// left-aligned.
const COLUMNS: [(usize, bool); 8] = [
    (4, false),
    (10, true),
    (6, false),
    (5, false),
    (4, false),
    (6, false),
    (6, false),
    (9, false),
];

/// Narrowest and widest column of clients.
const CLIENT_WIDTH: (usize, usize) = (12, 60);

/// The space for the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextSize {
    /// Characters in a line.
    pub(super) columns: usize,
    /// Lines.
    pub(super) rows: usize,
}

/// The totals of each conversation at some time: messages of the client and of the agent, and bytes
/// of both.
#[derive(Clone, Debug)]
pub(super) struct TotalsAt {
    at: Instant,
    all: HashMap<u64, [u64; 3]>,
}

/// Messages and bytes per second.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    each: HashMap<u64, [u64; 3]>,
}

impl TotalsAt {
    pub(super) fn of(status: &Value, at: Instant) -> Self {
        let of = |one: &Value| {
            let from = |side: &str| one["messages_from"][side].as_u64().unwrap_or(0);
            let numbers = [from("client"), from("agent"), bytes_of(one)];
            (number(one), numbers)
        };
        Self {
            at,
            all: connections(status).iter().map(of).collect(),
        }
    }

    /// The rates since `before`. Those of ended conversations are not known.
    pub(super) fn since(&self, before: &Self) -> Rates {
        let seconds = self.at.duration_since(before.at).as_secs_f64().max(1e-3);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate for the eye"
        )]
        let rate = |now: u64, then: u64| (now.saturating_sub(then) as f64 / seconds).round() as u64;
        let each = self.all.iter().map(|(number, now)| {
            // A new conversation did all of it since then.
            let then = before.all.get(number).copied().unwrap_or_default();
            let rates = [0, 1, 2].map(|at| rate(now[at], then[at]));
            (*number, rates)
        });
        Rates {
            each: each.collect(),
        }
    }
}

impl Rates {
    fn of(&self, one: &Value) -> [u64; 3] {
        self.each.get(&number(one)).copied().unwrap_or_default()
    }

    fn sum(&self) -> [u64; 3] {
        [0, 1, 2].map(|at| self.each.values().map(|rates| rates[at]).sum())
    }
}

/// The status as text, with rates instead of totals if they are known.
pub(super) fn render(status: &Value, size: TextSize, rates: Option<&Rates>) -> String {
    let mut lines = head(status, rates);
    let mut rows: Vec<&Value> = connections(status).iter().collect();
    if let Some(rates) = rates {
        // The highest rates first; among idle conversations, those in a turn.
        let busy = |one: &&Value| {
            let [from_client, from_agent, _] = rates.of(one);
            (from_client + from_agent, one["turns"].as_u64())
        };
        rows.sort_by_key(|one| (std::cmp::Reverse(busy(one)), number(one)));
    }
    if !rows.is_empty() {
        lines.push(String::new());
        let titles = match rates {
            None => ["#", "agent", "age", "turns", "sess", "in", "out", "bytes"],
            Some(_) => [
                "#", "agent", "age", "turns", "sess", "in/s", "out/s", "bytes/s",
            ],
        };
        lines.push(row(size, "client", &titles.map(str::to_owned)));
    }
    let room = size.rows.saturating_sub(lines.len());
    let shown = if rows.len() > room {
        room.saturating_sub(1)
    } else {
        rows.len()
    };
    for one in &rows[..shown] {
        let from = |side: &str| one["messages_from"][side].as_u64().unwrap_or(0);
        let [from_client, from_agent, passed] = rates.map_or_else(
            || [from("client"), from("agent"), bytes_of(one)],
            |rates| rates.of(one),
        );
        let cells = [
            one["number"].to_string(),
            text(&one["agent"]),
            span(&one["age_seconds"]),
            one["turns"].to_string(),
            one["sessions"].to_string(),
            count(from_client),
            count(from_agent),
            bytes(passed),
        ];
        lines.push(row(size, &text(&one["client"]), &cells));
    }
    if shown < rows.len() {
        lines.push(format!("… and {} more", rows.len() - shown));
    }
    let lines = lines.iter().map(|line| cut(line.trim_end(), size.columns));
    lines.fold(String::new(), |mut page, line| {
        page.push_str(&line);
        page.push('\n');
        page
    })
}

fn head(status: &Value, rates: Option<&Rates>) -> Vec<String> {
    let mut lines = vec![format!(
        "acp-relay {} · process {} · {} · up {}",
        text(&status["version"]),
        status["pid"],
        text(&status["state"]),
        span(&status["uptime_seconds"])
    )];
    let listeners = status["listeners"].as_array();
    let listeners = listeners.map_or(&[][..], Vec::as_slice);
    let open = listeners
        .iter()
        .map(|at| format!("listening on {}", text(at)));
    lines.extend(open);
    if listeners.is_empty() && status["state"] != "starting" {
        lines.push("no listener is open".to_owned());
    }
    let rows = connections(status);
    let sum = |what: &str| -> u64 { rows.iter().map(|row| row[what].as_u64().unwrap_or(0)).sum() };
    lines.push(format!(
        "{} ({} since the start), {}, {}",
        counted(rows.len() as u64, "connection"),
        status["connections_total"],
        counted(sum("sessions"), "session"),
        counted(sum("turns"), "turn")
    ));
    if let Some([from_client, from_agent, passed]) = rates.map(Rates::sum) {
        let messages = count(from_client + from_agent);
        lines.push(format!("{messages} messages/s, {}/s", bytes(passed)));
    }
    lines
}

/// The conversations of a status.
fn connections(status: &Value) -> &[Value] {
    status["connections"].as_array().map_or(&[], Vec::as_slice)
}

fn number(one: &Value) -> u64 {
    one["number"].as_u64().unwrap_or(0)
}

fn bytes_of(one: &Value) -> u64 {
    let sides = ["client", "agent"].iter();
    sides
        .filter_map(|side| one["bytes_from"][side].as_u64())
        .sum()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("?").to_owned()
}

fn row(size: TextSize, client: &str, cells: &[String; 8]) -> String {
    let taken: usize = COLUMNS.iter().map(|(width, _)| width + 1).sum();
    let (least, most) = CLIENT_WIDTH;
    let wide = size.columns.saturating_sub(taken).clamp(least, most);
    let mut line = String::new();
    for (at, (cell, (width, left))) in cells.iter().zip(COLUMNS).enumerate() {
        let cell = cut(cell, width);
        // Writing to a string does not fail.
        let _ = match left {
            true => write!(line, "{cell:width$} "),
            false => write!(line, "{cell:>width$} "),
        };
        if at == 0 {
            let _ = write!(line, "{:wide$} ", cut(client, wide));
        }
    }
    line
}

/// A line cut to a width.
fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let shortened = line.chars().take(width.saturating_sub(1));
    shortened.chain(['…']).collect()
}

/// A time in its two largest units.
fn span(seconds: &Value) -> String {
    let seconds = seconds.as_f64().unwrap_or(0.).max(0.);
    let whole = Duration::try_from_secs_f64(seconds);
    let whole = whole.unwrap_or_default().as_secs();
    match (
        whole / 86_400,
        whole / 3600 % 24,
        whole / 60 % 60,
        whole % 60,
    ) {
        (0, 0, 0, s) => format!("{s}s"),
        (0, 0, m, s) => format!("{m}m{s:02}s"),
        (0, h, m, _) => format!("{h}h{m:02}m"),
        (d, h, _, _) => format!("{d}d{h:02}h"),
    }
}

/// A number, abbreviated.
fn count(count: u64) -> String {
    match count {
        0..100_000 => count.to_string(),
        100_000..10_000_000 => format!("{}k", count / 1000),
        _ => format!("{}M", count / 1_000_000),
    }
}

/// A number of bytes, abbreviated.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut whole, mut unit) = (count, 0);
    while whole >= 10_240 && unit < UNITS.len() - 1 {
        whole /= 1024;
        unit += 1;
    }
    format!("{whole} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(conversations: u64, messages: u64) -> Value {
        let one = |number: u64| {
            json!({
                "number": number, "client": "ws://[2001:db8::1:2:3]:50122", "agent": "default",
                "age_seconds": 61, "turns": 1, "sessions": 2,
                "messages_from": {"client": messages * number, "agent": 2_000_000},
                "bytes_from": {"client": 10, "agent": 20_000_000},
            })
        };
        json!({
            "version": "0.1.0", "pid": 7, "state": "serving", "uptime_seconds": 90_061,
            "listeners": ["ws://127.0.0.1:9000/acp"], "connections_total": 99,
            "connections": (1..=conversations).map(one).collect::<Vec<_>>(),
        })
    }

    #[test]
    fn report_fits_the_terminal() {
        for (columns, rows) in [(80, 24), (200, 50), (60, 10)] {
            for conversations in [0, 1, 5, 500] {
                let status = status(conversations, 1);
                let now = TotalsAt::of(&status, Instant::now());
                let size = TextSize { columns, rows };
                for rates in [None, Some(now.since(&now))] {
                    let text = render(&status, size, rates.as_ref());
                    let lines: Vec<_> = text.lines().collect();
                    assert!(lines.len() <= rows, "{text}");
                    let widest = lines.iter().map(|line| line.chars().count()).max();
                    assert!(widest <= Some(columns), "{text}");
                }
            }
        }
    }

    #[test]
    fn busiest_conversation_is_first() {
        let then = Instant::now();
        let before = TotalsAt::of(&status(3, 0), then);
        let now = TotalsAt::of(&status(3, 10), then + Duration::from_secs(2));
        let size = TextSize {
            columns: 80,
            rows: 24,
        };
        let text = render(&status(3, 10), size, Some(&now.since(&before)));
        let rows: Vec<_> = text.lines().skip(6).collect();
        let first = rows.iter().map(|row| row.split_whitespace().next());
        assert_eq!(first.collect::<Vec<_>>(), [Some("3"), Some("2"), Some("1")]);
        assert!(rows[0].contains(" 15 "), "{text}");
        assert!(text.contains("30 messages/s"), "{text}");
    }

    #[test]
    fn times_and_sizes_are_short() {
        for (seconds, text) in [
            (0.4, "0s"),
            (61., "1m01s"),
            (3660., "1h01m"),
            (90_000., "1d01h"),
        ] {
            assert_eq!(span(&Value::from(seconds)), text);
        }
        assert_eq!(bytes(10_239), "10239 B");
        assert_eq!(bytes(10_240), "10 KiB");
        assert_eq!(bytes(u64::MAX), "16777215 TiB");
        assert_eq!(count(99_999), "99999");
        assert_eq!(count(u64::MAX), "18446744073709M");
    }
}
