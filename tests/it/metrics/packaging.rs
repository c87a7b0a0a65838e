//! The files for monitoring systems name nothing that there is not.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use acp_relay::observe::metrics::{CATALOGUE, Metric, PREFIX, Type};

fn read(path: &str) -> String {
    fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("packaging")
            .join(path),
    )
    .unwrap()
}

/// The names of ours in a text.
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

/// The names that a query may have.
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
fn the_documented_list_is_the_one_of_the_program() {
    let page = read("prometheus/METRICS.md");
    assert!(
        page == Metric::page(),
        "write this into packaging/prometheus/METRICS.md:\n{}",
        Metric::page()
    );
}

#[test]
fn alerts_and_panels_ask_for_metrics_that_there_are() {
    let known = known();
    for path in ["prometheus/alerts.yaml", "grafana/dashboard.json"] {
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
        serde_json::from_str(&read("grafana/dashboard.json")).unwrap();
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
