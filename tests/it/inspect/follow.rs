//! A recording is shown while it grows, into its next segment, until it ends.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use acp_relay::recording::write::{self, Stamp};
use acp_relay::recording::{EventKind, Header};

/// Longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn mark(n: u64, text: &str) -> Vec<u8> {
    event(n, &EventKind::Mark(text.to_owned()))
}

fn event(n: u64, what: &EventKind) -> Vec<u8> {
    let mut out = Vec::new();
    write::event(&mut out, Stamp { n, t: n, w: n }, what);
    out
}

fn end(n: u64, rotated: bool) -> Vec<u8> {
    let (why, digest) = ("over".to_owned(), String::new());
    event(
        n,
        &EventKind::End {
            rotated,
            reason: why,
            digest,
        },
    )
}

#[test]
fn follow_prints_a_growing_recording_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = |segment: u32| folder.path().join(format!("x.00{segment}.acpr"));
    let mut text = Vec::new();
    write::header(&mut text, &Header::default());
    for n in 1..=30 {
        text.extend(mark(n, &format!("early {n}")));
    }
    fs::write(path(0), &text).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_acp-relay"))
        .args([
            "inspect",
            "follow",
            "--last",
            "2",
            path(0).to_str().unwrap(),
            "kind:mark or kind:end",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (notify, lines) = sync_channel(64);
    std::thread::spawn(move || {
        for line in stdout.lines() {
            notify.send(line.unwrap()).unwrap();
        }
    });
    let next = || lines.recv_timeout(PATIENCE).expect("it follows");
    assert!(next().ends_with("mark: early 29"));
    assert!(next().ends_with("mark: early 30"));
    let mut file = OpenOptions::new().append(true).open(path(0)).unwrap();
    let line = mark(31, "live");
    // Half a line is no event.
    file.write_all(&line[..20]).unwrap();
    file.write_all(&line[20..]).unwrap();
    assert!(next().ends_with("mark: live"));
    file.write_all(&end(32, true)).unwrap();
    assert!(next().contains("continues in another file"));
    let mut later = Vec::new();
    write::header(
        &mut later,
        &Header {
            segment: 1,
            first: 33,
            ..Header::default()
        },
    );
    later.extend(mark(33, "later"));
    later.extend(end(34, false));
    fs::write(path(1), &later).unwrap();
    assert!(next().ends_with("mark: later"));
    assert!(next().contains("the recording ends"));
    assert!(child.wait().unwrap().success());
}
