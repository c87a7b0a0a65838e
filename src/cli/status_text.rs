//! The status as text: what `status` prints, and each screen of `top`.

use std::cmp::Reverse;
use std::time::Duration;

use serde_json::Value;

use super::console::counted;

/// An earlier status of the same relay, and how long ago it was.
pub(super) type Earlier<'s> = (&'s Value, Duration);

/// Messages of the client and of the agent, and bytes of both: totals, or those of a second.
type Traffic = [u64; 3];

/// The status as text, in so many columns and lines; with rates since an earlier one, if there is
/// one, instead of totals.
pub(super) fn render(
    status: &Value,
    [columns, most]: [usize; 2],
    earlier: Option<Earlier<'_>>,
) -> String {
    let rows = connections(status).iter();
    let mut rows: Vec<(&Value, Traffic)> = rows.map(|one| (one, traffic(one, earlier))).collect();
    let mut lines = head(status, &rows, earlier.is_some());
    let mut titles = [
        "#", "client", "agent", "age", "turns", "sess", "in", "out", "bytes",
    ];
    if earlier.is_some() {
        titles[6..].copy_from_slice(&["in/s", "out/s", "bytes/s"]);
        // The highest rates first; among idle conversations, those in a turn.
        rows.sort_by_key(|(one, [from_client, from_agent, _])| {
            let busy = (from_client + from_agent, one["turns"].as_u64());
            (Reverse(busy), one["number"].as_u64())
        });
    }
    if !rows.is_empty() {
        lines.push(String::new());
        lines.push(row(columns, titles));
    }
    let room = most.saturating_sub(lines.len());
    let shown = match rows.len() {
        all if all > room => room.saturating_sub(1),
        all => all,
    };
    for (one, [from_client, from_agent, passed]) in &rows[..shown] {
        let [number, turns, sessions] =
            ["number", "turns", "sessions"].map(|member| one[member].to_string());
        let (from_client, from_agent) = (count(*from_client), count(*from_agent));
        let (age, passed) = (span(&one["age_seconds"]), bytes(*passed));
        let cells = [
            &number,
            text(&one["client"]),
            text(&one["agent"]),
            &age,
            &turns,
            &sessions,
            &from_client,
            &from_agent,
            &passed,
        ];
        lines.push(row(columns, cells));
    }
    if shown < rows.len() {
        lines.push(format!("… and {} more", rows.len() - shown));
    }
    let lines = lines.iter();
    let lines = lines.map(|line| cut(line.trim_end(), columns) + "\n");
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
    let (version, state) = (text(&status["version"]), text(&status["state"]));
    let (pid, up) = (&status["pid"], span(&status["uptime_seconds"]));
    let mut lines = vec![format!(
        "acp-relay {version} · process {pid} · {state} · up {up}"
    )];
    let listeners = status["listeners"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    lines.extend(
        listeners
            .iter()
            .map(|at| format!("listening on {}", text(at))),
    );
    if listeners.is_empty() && state != "starting" {
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
        let sum = |of: fn(&Traffic) -> u64| rows.iter().map(|(_, traffic)| of(traffic)).sum();
        let messages = count(sum(|[client, agent, _]| client + agent));
        let passed = bytes(sum(|[.., passed]| *passed));
        lines.push(format!("{messages} messages/s, {passed}/s"));
    }
    lines
}

/// The conversations of a status.
fn connections(status: &Value) -> &[Value] {
    status["connections"].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

/// A row, in which the client takes the remaining width.
fn row(columns: usize, cells: [&str; 9]) -> String {
    let [
        number,
        client,
        agent,
        age,
        turns,
        sessions,
        sent,
        received,
        passed,
    ] = cells;
    let wide = columns.saturating_sub(58).clamp(12, 60);
    let (client, agent) = (cut(client, wide), cut(agent, 10));
    format!(
        "{number:>4} {client:wide$} {agent:10} {age:>6} {turns:>5} {sessions:>4} {sent:>6} \
         {received:>6} {passed:>9}"
    )
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
    let whole = seconds.as_f64().unwrap_or(0.) as u64;
    match [
        whole / 86_400,
        whole / 3600 % 24,
        whole / 60 % 60,
        whole % 60,
    ] {
        [0, 0, 0, s] => format!("{s}s"),
        [0, 0, m, s] => format!("{m}m{s:02}s"),
        [0, h, m, _] => format!("{h}h{m:02}m"),
        [d, h, _, _] => format!("{d}d{h:02}h"),
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

    #[test]
    fn report_fits_the_terminal_and_the_busiest_conversation_is_first() {
        let status = |conversations: u64, messages: u64| {
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
        };
        let (now, before) = (status(3, 10), status(3, 0));
        let text = render(&now, [80, 24], Some((&before, Duration::from_secs(2))));
        let first = text
            .lines()
            .skip(6)
            .map(|row| row.split_whitespace().next());
        assert_eq!(first.collect::<Vec<_>>(), [Some("3"), Some("2"), Some("1")]);
        for part in [" 15 ", "30 messages/s", "1m01s", "1d01h"] {
            assert!(text.contains(part), "{text}");
        }
        let all = status(500, 1);
        for size in [[200, 50], [60, 10]] {
            let text = render(&all, size, None);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(
                text.lines().count() <= size[1] && widest <= Some(size[0]),
                "{text}"
            );
        }
    }
}
