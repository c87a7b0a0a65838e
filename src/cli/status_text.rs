//! The status as text: what `status` prints, and each screen of `top`.

use std::cmp::Reverse;
use std::time::Duration;

use serde_json::Value;

use super::text::cut;
use analysis::text::counted;

/// An earlier status of the same relay, and how long ago it was.
pub(super) type Earlier<'s> = (&'s Value, Duration);

/// Messages of the client and of the agent, and bytes of both: totals, or those of a second.
type Traffic = [u64; 3];

const SIDES: [&str; 2] = ["client", "agent"];

/// The width of the columns besides that of the client, which takes the rest of a line.
const OTHERS: usize = 58;

/// The status as text, in so many columns and lines; with rates since an earlier one, if there is
/// one, instead of totals.
pub(super) fn render(
    status: &Value,
    [columns, most]: [usize; 2],
    earlier: Option<Earlier<'_>>,
) -> String {
    let rows = list(&status["connections"]).iter();
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
        lines.extend([String::new(), row(columns, titles.map(str::to_owned))]);
    }
    for (at, (one, [client, agent, passed])) in rows.iter().enumerate() {
        let cells = [
            one["number"].to_string(),
            text(&one["client"]).to_owned(),
            text(&one["agent"]).to_owned(),
            span(&one["age_seconds"]),
            one["turns"].to_string(),
            one["sessions"].to_string(),
            count(*client),
            count(*agent),
            bytes(*passed),
        ];
        let mut entry = vec![row(columns, cells)];
        entry.extend(SIDES.iter().filter_map(|side| away(one, side)));
        entry.extend(list(&one["silent"]).iter().map(silent));
        let left = rows.len() - at;
        if lines.len() + entry.len() + usize::from(left > 1) > most {
            lines.push(format!("… and {left} more"));
            break;
        }
        lines.extend(entry);
    }
    let lines = lines.iter();
    let lines = lines.map(|line| cut(line.trim_end(), columns) + "\n");
    lines.collect()
}

/// For how long a side has been disconnected, if it is.
fn away(one: &Value, side: &str) -> Option<String> {
    let away = one["away"][side].as_object()?;
    let (since, waiting) = (span(&away["seconds"]), away["waiting_bytes"].as_u64()?);
    let waits = bytes(waiting);
    Some(format!(
        "     the {side} has been disconnected for {since}; {waits} wait for it"
    ))
}

/// A request whose answer has not come for long.
fn silent(one: &Value) -> String {
    let (side, method, lasts) = (&one["side"], &one["method"], span(&one["seconds"]));
    let (side, method) = (text(side), text(method));
    format!("     the {side} has sent nothing for {lasts} and owes the answer to {method}")
}

/// The totals of a conversation, or its rates since an earlier status. A new one did all of it since
/// then.
fn traffic(one: &Value, earlier: Option<Earlier<'_>>) -> Traffic {
    let totals = |one: &Value| {
        let of = |what: &str| SIDES.map(|side| one[what][side].as_u64().unwrap_or(0));
        let [client, agent] = of("messages_from");
        [client, agent, of("bytes_from").iter().sum()]
    };
    let Some((before, ago)) = earlier else {
        return totals(one);
    };
    let mut before = list(&before["connections"]).iter();
    let then = before.find(|then| then["number"] == one["number"]);
    let (now, then) = (totals(one), then.map(totals).unwrap_or_default());
    let seconds = ago.as_secs_f64().max(0.001);
    [0, 1, 2].map(|at| (now[at].saturating_sub(then[at]) as f64 / seconds).round() as u64)
}

fn head(status: &Value, rows: &[(&Value, Traffic)], has_rates: bool) -> Vec<String> {
    let (version, state) = (text(&status["version"]), text(&status["state"]));
    let (pid, up) = (&status["pid"], span(&status["uptime_seconds"]));
    let mut lines = vec![format!(
        "acp-relay {version} · process {pid} · {state} · up {up}"
    )];
    let listeners = list(&status["listeners"]).iter();
    lines.extend(listeners.map(|at| format!("listening on {}", text(at))));
    if lines.len() == 1 && state != "starting" {
        lines.push("no listener is open".to_owned());
    }
    let sum = |what: &str| -> u64 { rows.iter().filter_map(|(one, _)| one[what].as_u64()).sum() };
    let is_away =
        |(one, _): &&(&Value, Traffic)| SIDES.iter().any(|side| away(one, side).is_some());
    lines.push(format!(
        "{} ({} since the start), {}, {}, {} disconnected",
        counted(rows.len() as u64, "connection"),
        status["connections_total"],
        counted(sum("sessions"), "session"),
        counted(sum("turns"), "turn"),
        rows.iter().filter(is_away).count()
    ));
    if has_rates {
        let sum = |of: fn(&Traffic) -> u64| rows.iter().map(|(_, traffic)| of(traffic)).sum();
        let messages = count(sum(|[client, agent, _]| client + agent));
        let passed = bytes(sum(|[.., passed]| *passed));
        lines.push(format!("{messages} messages/s, {passed}/s"));
    }
    lines
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

/// A row of the table.
fn row(columns: usize, cells: [String; 9]) -> String {
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
    let wide = columns.saturating_sub(OTHERS).clamp(12, 60);
    let (client, agent) = (cut(&client, wide), cut(&agent, 10));
    format!(
        "{number:>4} {client:wide$} {agent:10} {age:>6} {turns:>5} {sessions:>4} {sent:>6} \
         {received:>6} {passed:>9}"
    )
}

/// A time in its two largest units.
fn span(seconds: &Value) -> String {
    let whole = seconds.as_f64().unwrap_or(0.) as u64;
    let (days, hours, minutes) = (whole / 86_400, whole / 3600 % 24, whole / 60 % 60);
    match whole {
        0..60 => format!("{whole}s"),
        60..3600 => format!("{minutes}m{:02}s", whole % 60),
        3600..86_400 => format!("{hours}h{minutes:02}m"),
        _ => format!("{days}d{hours:02}h"),
    }
}

/// A number, abbreviated.
fn count(count: u64) -> String {
    short(count, 100_000, 1000, &["", "k", "M", "G"])
}

/// A number of bytes, abbreviated.
fn bytes(count: u64) -> String {
    short(count, 10_240, 1024, &[" B", " KiB", " MiB", " GiB", " TiB"])
}

/// A number below `most` in the smallest unit that allows it; each is `base` of the one before.
fn short(mut number: u64, most: u64, base: u64, units: &[&str]) -> String {
    let mut unit = 0;
    while number >= most && unit + 1 < units.len() {
        number /= base;
        unit += 1;
    }
    format!("{number}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn report_fits_the_terminal_and_the_busiest_conversation_is_first() {
        let status = |conversations: u64, messages: u64| {
            let one = |number: u64| {
                let away = (number == 2).then(|| json!({"seconds": 61, "waiting_bytes": 20_480}));
                json!({
                    "number": number, "client": "ws://[2001:db8::1:2:3]:50122", "agent": "default",
                    "age_seconds": 61, "turns": 1, "sessions": 2,
                    "messages_from": {"client": messages * number, "agent": 2_000_000},
                    "bytes_from": {"client": 10, "agent": 20_000_000},
                    "away": {"client": away, "agent": null},
                    "silent": (number == 1).then(|| {
                        json!([{"side": "agent", "method": "session/prompt", "seconds": 301}])
                    }),
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
        let rows = ["3", "2", "the", "1", "the"].map(Some);
        assert_eq!(first.collect::<Vec<_>>(), rows);
        let away = "the client has been disconnected for 1m01s; 20 KiB wait for it";
        let silent = "the agent has sent nothing for 5m01s and owes the answer to session/prompt";
        for part in [
            " 15 ",
            "30 messages/s",
            "1d01h",
            "1 disconnected",
            away,
            silent,
        ] {
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
