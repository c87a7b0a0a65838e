//! `acp-relay status` and `acp-relay health`: how a relay that runs is.
//!
//! Not here: the live view (see `top`), and what is told (see `admin`).

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use tokio::runtime::Builder;

use super::admin::{self, Asked, Place};
use super::{cli, console, exit, runtime};

/// Which relay is meant.
#[derive(Debug, Args)]
pub(super) struct Whose {
    /// The relay's admin listener; found by itself when one relay of yours is running
    #[arg(long, value_name = "ADDRESS", env = "ACP_RELAY_ADMIN")]
    pub(super) admin: Option<Place>,
}

/// What `status` is asked for.
#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    whose: Whose,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// What `health` is asked for.
#[derive(Debug, Args)]
pub(super) struct Health {
    #[command(flatten)]
    whose: Whose,
    /// Ask whether it lives, rather than whether it takes clients
    #[arg(long)]
    live: bool,
}

/// Runs `status`.
pub(super) fn status(args: &Status) -> ExitCode {
    let (json, whose) = (args.json, &args.whose);
    runtime::drive(Builder::new_current_thread(), async move {
        match fetch(whose, "/status").await {
            Ok(answer) if json => console::print(answer.body.trim_end(), exit::SUCCESS),
            Ok(answer) => match serde_json::from_str(&answer.body) {
                Ok(status) => console::print(page(&status).trim_end(), exit::SUCCESS),
                Err(_) => cli::fail(exit::PROTOCOL, &"what answers there is no relay"),
            },
            Err(fault) => cli::fail(exit::UNAVAILABLE, &fault),
        }
    })
}

/// Runs `health`: 0 when all is well, for the health checks of containers.
pub(super) fn health(args: &Health) -> ExitCode {
    let path = if args.live { "/healthz" } else { "/readyz" };
    let whose = &args.whose;
    runtime::drive(Builder::new_current_thread(), async move {
        match fetch(whose, path).await {
            Ok(answer) if answer.status == 200 => {
                console::print(answer.body.trim_end(), exit::SUCCESS)
            }
            Ok(answer) => cli::fail(1, &answer.body.trim_end()),
            Err(fault) => cli::fail(1, &fault),
        }
    })
}

/// Asks the relay that is meant.
pub(super) async fn fetch(whose: &Whose, path: &str) -> Result<Asked, String> {
    let place = admin::find(whose.admin.as_ref())?;
    admin::ask(&place, path).await
}

/// A status as a person reads it.
pub(super) fn page(status: &Value) -> String {
    let mut page = String::new();
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    // Writing to a string does not fail.
    let _ = writeln!(
        page,
        "acp-relay {} · process {} · {} · up {}",
        text(&status["version"]),
        status["pid"],
        text(&status["state"]),
        span(&status["uptime_seconds"])
    );
    let listeners = status["listeners"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    for listener in listeners {
        let _ = writeln!(page, "listening on {}", text(listener));
    }
    let rows = connections(status);
    let sum = |what: &str| -> u64 { rows.iter().map(|row| row[what].as_u64().unwrap_or(0)).sum() };
    let _ = writeln!(
        page,
        "{} connections ({} since the start), {} sessions, {} turns",
        rows.len(),
        status["connections_total"],
        sum("sessions"),
        sum("turns")
    );
    if !rows.is_empty() {
        let _ = writeln!(
            page,
            "\n{}",
            row([
                "#", "client", "agent", "age", "turns", "sessions", "in", "out", "bytes"
            ])
        );
    }
    for one in rows {
        let _ = writeln!(
            page,
            "{}",
            row([
                &one["number"].to_string(),
                &text(&one["client"]),
                &text(&one["agent"]),
                &span(&one["age_seconds"]),
                &one["turns"].to_string(),
                &one["sessions"].to_string(),
                &one["messages_from"]["client"].to_string(),
                &one["messages_from"]["agent"].to_string(),
                &bytes(total(one, "bytes_from")),
            ])
        );
    }
    page
}

/// The conversations of a status.
pub(super) fn connections(status: &Value) -> &[Value] {
    status["connections"].as_array().map_or(&[], Vec::as_slice)
}

/// Of the client and the agent together.
pub(super) fn total(one: &Value, what: &str) -> u64 {
    ["client", "agent"]
        .iter()
        .filter_map(|side| one[what][side].as_u64())
        .sum()
}

fn row(cells: [&str; 9]) -> String {
    let [
        number,
        client,
        agent,
        age,
        turns,
        sessions,
        heard,
        said,
        bytes,
    ] = cells;
    let client: String = client.chars().take(34).collect();
    let agent: String = agent.chars().take(12).collect();
    format!(
        "{number:>5} {client:34} {agent:12} {age:>8} {turns:>5} {sessions:>8} {heard:>8} {said:>8} {bytes:>9}"
    )
}

/// A time in its two largest units.
fn span(seconds: &Value) -> String {
    let seconds = seconds.as_f64().unwrap_or(0.).max(0.);
    let whole = Duration::try_from_secs_f64(seconds)
        .unwrap_or_default()
        .as_secs();
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

/// A number of bytes, short.
pub(super) fn bytes(count: u64) -> String {
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
    use super::*;

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
    }
}
