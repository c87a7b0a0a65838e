//! `verify`: damage is found, wherever it is.

use std::fs;
use std::io::Cursor;

use acp_relay::jsonrpc::{Frame, Side};
use acp_relay::recording::{
    PackedReader, Recording, SegmentReader, capture, pack, recordings, verify, verify_segment,
};

use super::stage::RecorderSetup;

fn recorded() -> Vec<u8> {
    let mut recording = RecorderSetup::default().start();
    for _ in 0..10 {
        recording.forward(
            Side::Client,
            br#"{"id":1,"method":"a","params":{"sessionId":"s"}}"#,
        );
        recording.forward(Side::Agent, br#"{"id":1,"result":{"text":"words"}}"#);
        recording.forward(Side::Agent, b"no\nmessage");
        recording.forward(Side::Agent, b"\xff\xfe");
    }
    recording.handle.stderr(b"x\n");
    recording.end().1.concat()
}

/// The ids of what is found in a segment.
fn findings(text: &[u8]) -> Vec<&'static str> {
    let report = verify_segment(SegmentReader::new(Cursor::new(text))).unwrap();
    report.findings.iter().map(|finding| finding.id).collect()
}

/// Numbers that look random and are the same each time.
fn numbers(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    }
}

#[test]
fn one_flipped_bit_is_found_in_each_of_10_000_copies() {
    let text = recorded();
    assert!(findings(&text).is_empty(), "{:?}", findings(&text));
    let mut number = numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..10_000 {
        let (at, bit) = (number(text.len()), number(8));
        let mut copy = text.clone();
        copy[at] ^= 1 << bit;
        assert!(!findings(&copy).is_empty(), "bit {bit} of byte {at}");
    }
}

#[test]
fn a_translation_that_does_not_match_its_source_is_found() {
    let mut recording = RecorderSetup {
        dialect: "goose-v1",
        ..RecorderSetup::default()
    }
    .start();
    let received = Frame::from(r#"{"id":1,"result":{"stop":"end"}}"#);
    let sent = Frame::from(r#"{"id":1,"result":{"stopReason":"end_turn"}}"#);
    recording.translate(Side::Agent, &received, &[], &sent);
    let text = String::from_utf8(recording.end().1.concat()).unwrap();
    // Without the end event, whose digest would not match.
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let lines = &lines[..lines.len() - 1];
    assert!(findings(lines.concat().as_bytes()).is_empty());
    let changed = |line: &&str| {
        let line = line.replace(r#""value":"end_turn""#, r#""value":"refusal""#);
        let (content, _) = line.rsplit_once(",\"crc\"").unwrap();
        let sum = crc32c::crc32c(content.as_bytes());
        format!("{content},\"crc\":\"{sum:08x}\"}}\n")
    };
    let forged: String = lines.iter().map(changed).collect();
    assert_ne!(forged, lines.concat());
    assert_eq!(findings(forged.as_bytes()), ["translation"]);
}

#[test]
fn lines_that_are_missing_doubled_or_moved_are_found() {
    let text = recorded();
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    for at in 0..lines.len() - 1 {
        let mut missing = lines.clone();
        missing.remove(at);
        assert!(
            !findings(&missing.concat()).is_empty(),
            "line {at} is missing"
        );
        let mut doubled = lines.clone();
        doubled.insert(at, lines[at]);
        assert!(
            !findings(&doubled.concat()).is_empty(),
            "line {at} is there twice"
        );
        let mut moved = lines.clone();
        moved.swap(at, at + 1);
        assert!(!findings(&moved.concat()).is_empty(), "line {at} was moved");
    }
    // A recording without its end event was cut off, which is no damage.
    let cut = lines[..lines.len() - 1].concat();
    let report = verify_segment(SegmentReader::new(Cursor::new(cut))).unwrap();
    assert!(!report.ended && report.findings.is_empty());
}

#[test]
fn a_torn_tail_is_reported_and_all_before_it_read() {
    let text = recorded();
    for length in 1..text.len() {
        let cut = &text[..length];
        let whole = cut.last() == Some(&b'\n');
        let expected: &[&str] = if whole { &[] } else { &["torn"] };
        assert_eq!(findings(cut), expected, "after {length} bytes");
        let lines = cut.iter().filter(|byte| **byte == b'\n').count();
        let read = SegmentReader::new(Cursor::new(cut)).count();
        assert_eq!(read, lines);
    }
}

#[test]
fn a_packed_segment_reads_the_same_from_anywhere_and_hides_no_damage() {
    let text = recorded().repeat(800);
    assert!(text.len() > 3 << 20);
    let mut packed = Vec::new();
    pack(&text[..], &mut packed, 3).unwrap();
    assert!(packed.len() * 4 < text.len());
    let all = SegmentReader::new(Cursor::new(&text)).map(|entry| entry.unwrap().line);
    let same = SegmentReader::new(PackedReader::new(Cursor::new(&packed)).unwrap());
    assert!(all.eq(same.map(|entry| entry.unwrap().line)));
    for offset in [
        0,
        1,
        1 << 20,
        (1 << 20) + 1,
        (2 << 20) + 77,
        text.len() as u64 - 1,
    ] {
        let mut plain = SegmentReader::new(Cursor::new(&text));
        let mut same = SegmentReader::new(PackedReader::new(Cursor::new(&packed)).unwrap());
        plain.seek(offset).unwrap();
        same.seek(offset).unwrap();
        let next = |entry: Option<std::io::Result<_>>| entry.map(Result::unwrap);
        assert_eq!(next(plain.next()), next(same.next()), "from {offset}");
    }
    assert_eq!(zstd::decode_all(&packed[..]).unwrap(), text);
    let mut number = numbers(77);
    for _ in 0..200 {
        let (at, bit) = (number(packed.len()), number(8));
        let mut copy = packed.clone();
        copy[at] ^= 1 << bit;
        let mut plain = Vec::new();
        let whole = PackedReader::new(Cursor::new(&copy[..]))
            .and_then(|mut packed| std::io::copy(&mut packed, &mut plain));
        // A bit that zstd does not use may change nothing.
        let found = whole.is_err() || plain == text;
        assert!(found, "bit {bit} of byte {at} of {}", packed.len());
    }
}

#[test]
fn segments_are_linked() {
    let folder = tempfile::tempdir().unwrap();
    let segment = |name: &str, first: u64, number: u64, previous: Option<String>| {
        use acp_relay::recording::write::{Stamp, event, header};
        use acp_relay::recording::{EventKind, Header};
        let mut text = Vec::new();
        let head = Header {
            id: "a".to_owned(),
            segment: number,
            first,
            previous,
            ..Header::default()
        };
        header(&mut text, &head);
        for n in first..first + 3 {
            let stamp = Stamp { n, t: n, w: n };
            event(&mut text, stamp, &EventKind::Mark("x".to_owned()));
        }
        let digest = blake3::hash(&text).to_hex().to_string();
        let stamp = Stamp {
            n: first + 3,
            t: first + 3,
            w: 0,
        };
        let end = EventKind::End {
            rotated: number == 0,
            reason: String::new(),
            digest,
        };
        event(&mut text, stamp, &end);
        fs::write(folder.path().join(name), &text).unwrap();
        blake3::hash(&text).to_hex().to_string()
    };
    let ids = |recording: &Recording| -> Vec<&str> {
        let report = verify(recording);
        report.findings.iter().map(|finding| finding.id).collect()
    };
    let digest = segment("r.000.acpr", 1, 0, None);
    segment("r.001.acpr", 5, 1, Some(digest.clone()));
    let found = recordings(folder.path()).unwrap();
    assert_eq!((found.len(), found[0].segments.len()), (1, 2));
    assert_eq!(ids(&found[0]), [""; 0]);
    assert_eq!(found[0].events().count(), 8);
    segment("r.001.acpr", 5, 1, Some("0".repeat(64)));
    assert_eq!(ids(&found[0]), ["link"]);
    segment("r.001.acpr", 6, 1, Some(digest));
    assert_eq!(ids(&found[0]), ["number"]);
    fs::remove_file(folder.path().join("r.000.acpr")).unwrap();
    assert_eq!(ids(&found[0])[0], "unreadable");
}

#[test]
fn an_unreadable_middle_is_reported_once_by_every_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.acpr.zst");
    let mut packed = Vec::new();
    pack(Cursor::new(recorded()), &mut packed, 3).unwrap();
    let middle = packed.len() / 3;
    packed[middle] ^= 1;
    fs::write(&path, packed).unwrap();
    let recording = Recording::of(&path).unwrap();
    // Bounded, so that a reader that never ends fails and does not hang.
    let errors = |failed: Vec<bool>| failed.into_iter().filter(|failed| *failed).count();
    let entries = recording.entries().map(|entry| entry.is_err());
    assert_eq!(errors(entries.take(1_000).collect()), 1);
    let events = recording.events().map(|event| event.is_err());
    assert_eq!(errors(events.take(1_000).collect()), 1);
    let lines = capture::Lines::new(capture::open(&path).unwrap());
    let lines = lines.map(|line| line.is_err());
    assert_eq!(errors(lines.take(1_000).collect()), 1);
    assert_eq!(verify(&recording).findings.last().unwrap().id, "unreadable");
}
