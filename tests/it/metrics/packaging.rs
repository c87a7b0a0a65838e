//! The files for monitoring systems name only what exists.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use acp_relay::observe::metrics::{CATALOGUE, Metric, PREFIX, Type};
use regex_lite::Regex;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(path)).unwrap()
}

/// The rows of the table of all metrics in the documentation.
fn rows() -> String {
    let mut rows = String::new();
    for metric in CATALOGUE {
        let labels = metric.labels.iter().map(|label| format!("`{label}`"));
        let (name, kind, meaning) = (metric.name, metric.kind.name(), metric.meaning);
        let labels = labels.collect::<Vec<_>>().join(", ");
        writeln!(rows, "| `{name}` | {kind} | {labels} | {meaning} |").unwrap();
    }
    rows
}

/// The names of our metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let name = Regex::new(&format!(r"\b(?:{PREFIX}|process_)\w+")).unwrap();
    name.find_iter(text).map(|name| name.as_str()).collect()
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
    let rows = rows();
    assert!(
        written.contains(&format!("|---|---|---|---|\n{rows}\n")),
        "write this into src/docs/metrics.md:\n{rows}"
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
