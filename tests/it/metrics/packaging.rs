//! The files for monitoring systems name only what exists.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use acp_relay::observe::metrics::{CATALOGUE, Metric, PREFIX, Type};

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(path)).unwrap()
}

/// The end of the documentation's page.
const NOT_HERE: &str = "
## What is not here

- *Members and methods that are not known*: `acp_relay_dialect_events_total` with `event=\"unknown_member\"` or `\"unknown_method\"` counts them, by dialect and side.
- *What `check` and `inspect lint` find*: they look at a conversation afterwards. The schema is not on the message path, so there is nothing to count while it goes on.
- *Panics*: a built relay ends with the first one, so `process_start_time_seconds` is another, and agents end with it.
- *Waiting for the disk* (fsync): recordings are handed to the system and no more; `acp_relay_recording_write_seconds` is how long that takes.
- *Links that were refused*: a client that asks for a session that is not kept for it gets an agent of its own, and is a `new` one.
- *Frames sent again, gaps, round trips*: between two relays there is no protocol of ours that would have them.
- *How long tokio's tasks are polled*: tokio measures that only in builds with `tokio_unstable`.
";

/// The page of the documentation that lists all metrics.
fn page() -> String {
    let mut page = String::from(
        "# Metrics\n\nMade from `src/observe/metrics/catalogue.rs`; a test holds the two together.\n\n\
         Counters with one label besides `agent` are there from the start, at 0; those that combine labels\n\
         appear with their first event, so an alert on the first has to look for a new series as well.\n\
         The format is Prometheus' text format 0.0.4.\n\n\
         | name | type | labels | meaning |\n|---|---|---|---|\n",
    );
    for metric in CATALOGUE {
        let labels: Vec<_> = metric
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let kind = metric.kind.name();
        writeln!(
            page,
            "| `{}` | {kind} | {} | {} |",
            metric.name,
            labels.join(", "),
            metric.meaning
        )
        .unwrap();
    }
    page.push_str(NOT_HERE);
    page
}

/// The names of our metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let word = |at: usize| {
        let rest = &text[at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    };
    let starts = text
        .match_indices(PREFIX)
        .chain(text.match_indices("process_"));
    let is_whole =
        |at: usize| !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let starts = starts.filter(|(at, _)| is_whole(*at));
    starts.map(|(at, _)| word(at)).collect()
}

/// The names that a query may use.
fn known() -> BTreeSet<String> {
    let samples = |metric: &Metric| match metric.kind {
        Type::Histogram => ["_bucket", "_sum", "_count"]
            .map(|part| format!("{}{part}", metric.name))
            .to_vec(),
        Type::Counter | Type::Gauge => vec![metric.name.to_owned()],
    };
    CATALOGUE.iter().flat_map(samples).collect()
}

#[test]
fn the_documented_list_of_metrics_matches_the_program() {
    let written = read("docs/metrics.md");
    assert!(
        written == page(),
        "write this into src/docs/metrics.md:\n{}",
        page()
    );
}

#[test]
fn alerts_and_panels_use_existing_metrics() {
    let known = known();
    for path in [
        "assets/prometheus/alerts.yaml",
        "assets/grafana/dashboard.json",
    ] {
        let text = read(path);
        let names = names(&text);
        assert!(names.len() > 5, "{path}");
        for name in names {
            assert!(known.contains(name), "{name} in {path}");
        }
    }
}

#[test]
fn the_dashboard_has_a_query_in_every_panel() {
    let dashboard: serde_json::Value =
        serde_json::from_str(&read("assets/grafana/dashboard.json")).unwrap();
    let mut panels = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        if panel["type"] == "row" {
            continue;
        }
        panels += 1;
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{}", panel["title"]);
        for target in targets {
            let query = target["expr"].as_str().unwrap();
            assert!(!names(query).is_empty(), "{query}");
            assert_eq!(
                query.matches('(').count(),
                query.matches(')').count(),
                "{query}"
            );
        }
    }
    assert!(panels >= 15, "{panels}");
}
