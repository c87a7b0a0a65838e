//! SIGKILL at any moment: every line of the file is whole, but for at most one torn one.

use std::fs;
use std::path::Path;
use std::time::Duration;

use acp_relay::recording::{Parsed, open, recordings, verify};
use rustix::process::Signal;

use crate::support::program::Program;

/// How many kills, unless `ACP_RELAY_KILLS` is set.
const KILLS: u32 = 12;

/// The bytes of a recording that has more than its header and ten events.
const BEGUN: u64 = 8 << 10;

/// An agent that never stops sending.
const AGENT: &str = r#"while :; do printf '{"method":"session/update","params":{"sessionId":"s","t":"%s"}}\n' "$$ and some more words"; done"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_recorder_leaves_whole_lines() {
    let kills = std::env::var("ACP_RELAY_KILLS").ok();
    let kills = kills.map_or(KILLS, |count| count.parse().unwrap());
    let mut events = 0;
    for kill in 0..kills {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("recordings");
        let place = place.to_str().unwrap();
        let args = ["connect", "--record", place, "--", "sh", "-c", AGENT];
        let mut program = Program::start(&args);
        // The recorder has begun; the kill may come at any moment from here.
        while recorded(Path::new(place)) < BEGUN {
            program.line().await.unwrap();
        }
        tokio::time::sleep(Duration::from_micros(u64::from(kill * 7919 % 97) * 1_000)).await;
        program.signal(Signal::KILL);
        program.exit().await;
        events += check(Path::new(place));
    }
    assert!(events > u64::from(kills) * 5, "{events} events in all");
}

/// The bytes of the recording so far.
fn recorded(place: &Path) -> u64 {
    let found = recordings(place).unwrap_or_default();
    let segments = found.iter().flat_map(|one| &one.segments);
    let sizes = segments.map(|path| fs::metadata(path).map_or(0, |about| about.len()));
    sizes.sum()
}

/// Checks the recording that is left; returns its number of events.
fn check(place: &Path) -> u64 {
    let found = recordings(place).unwrap();
    assert_eq!(found.len(), 1);
    let path = &found[0].segments[0];
    let mut reader = open(path).unwrap();
    for entry in reader.by_ref() {
        let entry = entry.unwrap();
        assert!(!matches!(entry.parsed, Parsed::Invalid(_)), "{entry:?}");
    }
    let size = fs::metadata(path).unwrap().len();
    assert_eq!(reader.at() + reader.torn_bytes(), size);
    let report = verify(&found[0]);
    let torn = u64::from(reader.torn_bytes() > 0);
    assert_eq!(report.findings.len() as u64, torn, "{:?}", report.findings);
    report.events
}
