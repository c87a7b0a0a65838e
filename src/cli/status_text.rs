//! The status as text: what `status` prints, and each screen of `top`.

use std::cmp::Reverse;
use std::time::Duration;

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

/// An earlier status of the same relay, and how long ago it was.
pub(super) type Earlier<'s> = (&'s Value, Duration);

/// Messages of the client and of the agent, and bytes of both: totals, or those of a second.
type Traffic = [u64; 3];

/// The status as text; with rates since an earlier one, if there is one, instead of totals.
pub(super) fn render(status: &Value, size: TextSize, earlier: Option<Earlier<'_>>) -> String {
    let rows = connections(status).iter();
    let mut rows: Vec<(&Value, Traffic)> = rows.map(|one| (one, traffic(one, earlier))).collect();
    let mut lines = head(status, &rows, earlier.is_some());
    let mut titles = ["#", "agent", "age", "turns", "sess", "in", "out", "bytes"];
    if earlier.is_some() {
        titles[5..].copy_from_slice(&["in/s", "out/s", "bytes/s"]);
        // The highest rates first; among idle conversations, those in a turn.
        rows.sort_by_key(|(one, [from_client, from_agent, _])| {
            let busy = (from_client + from_agent, one["turns"].as_u64());
            (Reverse(busy), one["number"].as_u64())
        });
    }
    if !rows.is_empty() {
        lines.push(String::new());
        lines.push(row(size, "client", &titles.map(str::to_owned)));
    }
    let room = size.rows.saturating_sub(lines.len());
    let shown = match rows.len() {
        all if all > room => room.saturating_sub(1),
        all => all,
    };
    for (one, [from_client, from_agent, passed]) in &rows[..shown] {
        let cells = [
            one["number"].to_string(),
            text(&one["agent"]),
            span(&one["age_seconds"]),
            one["turns"].to_string(),
            one["sessions"].to_string(),
            count(*from_client),
            count(*from_agent),
            bytes(*passed),
        ];
        lines.push(row(size, &text(&one["client"]), &cells));
    }
    if shown < rows.len() {
        lines.push(format!("… and {} more", rows.len() - shown));
    }
    let lines = lines.iter();
    let lines = lines.map(|line| cut(line.trim_end(), size.columns) + "\n");
    lines.collect()
}

/// The totals of a conversation, or its rates since an earlier status. A new one did all of it since
/// then.
fn traffic(one: &Value, earlier: Option<Earlier<'_>>) -> Traffic {
    let totals = |one: &Value| {
        let of = |what: &str, side: &str| one[what][side].as_u64().unwrap_or(0);
        let passed = of("bytes_from", "client") + of("bytes_from", "agent");
        [
            of("messages_from", "client"),
            of("messages_from", "agent"),
            passed,
        ]
    };
    let Some((before, ago)) = earlier else {
        return totals(one);
    };
    let mut before = connections(before).iter();
    let then = before.find(|then| then["number"] == one["number"]);
    let (now, then) = (totals(one), then.map(totals).unwrap_or_default());
    let millis = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX).max(1);
    [0, 1, 2].map(|at| (now[at].saturating_sub(then[at]) * 1000 + millis / 2) / millis)
}

fn head(status: &Value, rows: &[(&Value, Traffic)], has_rates: bool) -> Vec<String> {
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
    let sum = |what: &str| -> u64 {
        let each = rows.iter().map(|(one, _)| one[what].as_u64());
        each.map(Option::unwrap_or_default).sum()
    };
    lines.push(format!(
        "{} ({} since the start), {}, {}",
        counted(rows.len() as u64, "connection"),
        status["connections_total"],
        counted(sum("sessions"), "session"),
        counted(sum("turns"), "turn")
    ));
    if has_rates {
        let messages = rows.iter().map(|(_, [client, agent, _])| client + agent);
        let passed = rows.iter().map(|(_, [.., passed])| passed);
        let (messages, passed) = (count(messages.sum()), bytes(passed.sum()));
        lines.push(format!("{messages} messages/s, {passed}/s"));
    }
    lines
}

/// The conversations of a status.
fn connections(status: &Value) -> &[Value] {
    status["connections"].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("?").to_owned()
}

fn row(size: TextSize, client: &str, cells: &[String; 8]) -> String {
    let taken: usize = COLUMNS.iter().map(|(width, _)| width + 1).sum();
    let (least, most) = CLIENT_WIDTH;
    let wide = size.columns.saturating_sub(taken).clamp(least, most);
    let cells = cells.iter().zip(COLUMNS);
    let mut cells = cells.map(|(cell, (width, left))| match (cut(cell, width), left) {
        (cell, true) => format!("{cell:width$} "),
        (cell, false) => format!("{cell:>width$} "),
    });
    let number = cells.next().unwrap_or_default();
    let rest: String = cells.collect();
    format!("{number}{:wide$} {rest}", cut(client, wide))
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
                let size = TextSize { columns, rows };
                for earlier in [None, Some((&status, Duration::ZERO))] {
                    let text = render(&status, size, earlier);
                    let widest = text.lines().map(|line| line.chars().count()).max();
                    let fits = text.lines().count() <= rows && widest <= Some(columns);
                    assert!(fits, "{text}");
                }
            }
        }
    }

    #[test]
    fn busiest_conversation_is_first() {
        let (columns, rows) = (80, 24);
        let (before, now) = (status(3, 0), status(3, 10));
        let earlier = Some((&before, Duration::from_secs(2)));
        let text = render(&now, TextSize { columns, rows }, earlier);
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
