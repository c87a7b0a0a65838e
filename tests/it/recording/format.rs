//! The file format: what is written is what is read.

use std::io::Cursor;

use acp_relay::jsonrpc::{Kind, Limits, Side, is_json};
use acp_relay::recording::write::{self, FrameInfo, Stamp};
use acp_relay::recording::{
    EventKind, Exchanges, Header, Message, Parsed, Passed, Payload, PeerInfo, RecordedEvent,
    Redaction, SegmentReader, parse_line,
};
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;

const STAMP: Stamp = Stamp {
    n: 7,
    t: 1_234_567,
    w: 1_795_190_340_000_042,
};

/// An event after it was written and read.
fn again(what: &EventKind) -> RecordedEvent {
    let mut out = Vec::new();
    write::event(&mut out, STAMP, what);
    assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
    match parse_line(&Bytes::from(out)) {
        Parsed::Event(event) => *event,
        other => panic!("{other:?}"),
    }
}

fn message() -> Message {
    Message {
        edge: Side::Agent,
        to: Side::Client,
        id: Some("\"a\\\"b\"".to_owned()),
        method: Some("session/\"prompt\"".to_owned()),
        session: Some("s\u{e9}\n1".to_owned()),
        kind: Some(Kind::Result),
        answers: Some(3),
        source: Some(5),
        rules: vec!["goose/fs.rename".to_owned(), "x/\"y\"".to_owned()],
        patch: Some(json!([{"op": "remove", "path": "/a"}])),
        redacted: vec!["/params/env".to_owned()],
        body: Payload::Json(Bytes::from_static(br#"{"a": 1e400}"#)),
    }
}

#[test]
fn every_kind_of_event_is_read_as_it_was_written() {
    let owned = |text: &str| text.to_owned();
    let bare = Message {
        edge: Side::Client,
        to: Side::Agent,
        id: None,
        method: None,
        session: None,
        kind: None,
        answers: None,
        source: None,
        rules: Vec::new(),
        patch: None,
        redacted: Vec::new(),
        body: Payload::Omitted(12),
    };
    let all = [
        EventKind::Message(Box::new(message())),
        EventKind::Message(Box::new(bare)),
        EventKind::Passed(Passed {
            to: Side::Client,
            first: 3,
            last: 9,
            count: 4,
        }),
        EventKind::Stderr(Payload::Text(Bytes::from_static(b"Ready.\n"))),
        EventKind::Stderr(Payload::Bytes(Bytes::from_static(b"\xff\0"))),
        EventKind::Process {
            event: owned("exit"),
            detail: owned("code 3"),
        },
        EventKind::Link {
            side: Side::Agent,
            event: owned("open"),
            detail: owned("process 1 (\u{1b}[31m)"),
        },
        EventKind::Note {
            name: owned("stray_line"),
            text: owned("a line\nof \"7\" bytes"),
            source: Some(2),
        },
        EventKind::Gap {
            events: 17,
            bytes: 4096,
            reason: owned("the queue was full"),
        },
        EventKind::Clock { jump: -1_500_000 },
        EventKind::Clock { jump: 2 },
        EventKind::Mark(owned("here")),
        EventKind::Resume,
        EventKind::End {
            rotated: true,
            reason: owned("size"),
            digest: owned("00ff"),
        },
        EventKind::End {
            rotated: false,
            reason: owned("over"),
            digest: owned("00ff"),
        },
    ];
    for what in all {
        let event = again(&what);
        assert_eq!((event.n, event.t, event.w), (STAMP.n, STAMP.t, STAMP.w));
        assert_eq!(event.kind, what);
    }
}

#[test]
fn a_header_is_read_as_it_was_written() {
    let header = Header {
        version: 1,
        id: "00".repeat(16),
        segment: 2,
        first: 4711,
        began: 1_795_190_340_000_042,
        by: "acp-relay 0.1.0".to_owned(),
        client: PeerInfo {
            name: "stdio".to_owned(),
            dialect: "canonical".to_owned(),
        },
        agent: PeerInfo {
            name: "process 4711 (\"x\")".to_owned(),
            dialect: "goose-v1".to_owned(),
        },
        tables: Some("01234567+89abcdef".to_owned()),
        policy: "lossless".to_owned(),
        redaction: Redaction {
            mode: "default".to_owned(),
            rules: "default@1".to_owned(),
            key: "abc".to_owned(),
        },
        previous: Some("ff".repeat(32)),
    };
    let mut out = Vec::new();
    write::header(&mut out, &header);
    assert_eq!(parse_line(&out.into()), Parsed::Header(Box::new(header)));
}

/// What is kept of `frame` by the recorder's own rule.
fn kept(frame: &[u8]) -> Payload<&[u8]> {
    if is_json(frame, &Limits::default()) && write::fits_line(frame) {
        Payload::Json(frame)
    } else {
        Payload::Bytes(frame)
    }
}

fn bytes_again(frame: &[u8]) -> Bytes {
    let mut out = Vec::new();
    let info = FrameInfo::new(Side::Client, Side::Agent);
    write::frame(&mut out, STAMP, &info, &kept(frame));
    assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
    match parse_line(&Bytes::from(out)) {
        Parsed::Event(event) => match event.kind {
            EventKind::Message(message) => message.body.bytes().unwrap().clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn frames_that_look_like_the_format_keep_their_bytes() {
    for frame in [
        &b""[..],
        b"{}",
        b" {} ",
        b"{}\n",
        b"{\n  \"a\": 1\n}",
        b"{\"a\":1}\r",
        b"\"crc\"",
        br#"{"crc":"00000000"}"#,
        br#"{"m":{},"crc":"00000000"}"#,
        br#"{"a":1},"crc":"00000000"}"#,
        b"{\"a\":\"\\ud83d\",\"b\":1e400,\"b\":2}",
        b"\xef\xbb\xbf{}",
        b"\xff\xfe\0",
        b"\0",
        b"a\x1b[31m\"\\",
        "\u{2028}\u{feff}\u{202e}".as_bytes(),
        b"[[[[",
    ] {
        assert_eq!(bytes_again(frame), frame, "{}", frame.escape_ascii());
    }
}

proptest! {
    #[test]
    fn any_frame_keeps_its_bytes(frame in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(bytes_again(&frame), frame);
    }

    #[test]
    fn any_text_keeps_its_bytes(frame in "[\\{\\}\\[\\]\",:a-c\\\\ \n\t0-9é]{0,40}") {
        prop_assert_eq!(bytes_again(frame.as_bytes()), frame.as_bytes());
    }

    #[test]
    fn any_line_is_read_without_a_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut whole = text.clone();
        whole.extend_from_slice(b",\"crc\":\"");
        let _ = parse_line(&text.into());
        let _ = parse_line(&whole.into());
    }
}

#[test]
fn numbers_and_times_of_any_size_are_written_in_full() {
    for (value, expected) in [
        (0, r#"{"n":0,"t":0.000000,"w":0.000000,"#),
        (7, r#"{"n":7,"t":0.000007,"w":0.000007,"#),
        (1_002_030, r#"{"n":1002030,"t":1.002030,"w":1.002030,"#),
        (
            u64::MAX,
            r#"{"n":18446744073709551615,"t":18446744073709.551615,"w":18446744073709.551615,"#,
        ),
    ] {
        let mut out = Vec::new();
        let (n, t, w) = (value, value, value);
        write::event(&mut out, Stamp { n, t, w }, &EventKind::Resume);
        let line = String::from_utf8(out).unwrap();
        assert!(line.starts_with(expected), "{line}");
    }
}

/// A segment of `count` notifications, and where each line begins.
fn segment(count: u64) -> (Vec<u8>, Vec<u64>) {
    let mut out = Vec::new();
    let mut starts = vec![0];
    let header = Header::default();
    write::header(&mut out, &header);
    for n in 1..=count {
        starts.push(out.len() as u64);
        let stamp = Stamp { n, t: n, w: n };
        let body = format!(
            r#"{{"method":"m","params":{}}}"#,
            "1".repeat(n as usize % 50 + 1)
        );
        let info = FrameInfo::new(Side::Agent, Side::Client);
        write::frame(&mut out, stamp, &info, &Payload::Json(body.as_bytes()));
    }
    (out, starts)
}

#[test]
fn a_reader_starts_at_any_offset_and_reports_its_position() {
    let (text, starts) = segment(50);
    let mut reader = SegmentReader::new(Cursor::new(text.clone()));
    let all: Vec<u64> = reader.by_ref().map(|entry| entry.unwrap().at).collect();
    assert_eq!(all, starts);
    for offset in 0..=text.len() as u64 {
        reader.seek(offset).unwrap();
        let next = starts.iter().copied().find(|start| *start >= offset);
        let found = reader.next().map(|entry| entry.unwrap().at);
        assert_eq!(found, next, "from {offset}");
    }
}

#[test]
fn a_growing_file_never_shows_half_a_line() {
    struct Growing(std::rc::Rc<std::cell::RefCell<Vec<u8>>>, usize);
    impl std::io::Read for Growing {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let text = self.0.borrow();
            let count = into.len().min(text.len() - self.1);
            into[..count].copy_from_slice(&text[self.1..self.1 + count]);
            self.1 += count;
            Ok(count)
        }
    }
    let (text, starts) = segment(5);
    let file = std::rc::Rc::default();
    let mut reader = SegmentReader::new(Growing(std::rc::Rc::clone(&file), 0));
    let mut seen = 0;
    for (at, byte) in text.iter().enumerate() {
        file.borrow_mut().push(*byte);
        let new = reader.next();
        assert_eq!(new.is_some(), *byte == b'\n');
        if let Some(entry) = new {
            assert!(!matches!(entry.unwrap().parsed, Parsed::Invalid(_)));
            seen += 1;
            assert_eq!(reader.torn_bytes(), 0);
        } else {
            assert!(reader.torn_bytes() > 0, "at {at}");
        }
    }
    assert_eq!(seen, starts.len());
}

#[test]
fn unknown_events_and_members_are_kept_and_newer_versions_are_refused() {
    let content = br#"{"n":1,"t":0.5,"w":2,"k":"hologram","of":{"x":[1]},"new":"\u0000""#;
    let found = parse_line(&sealed(content));
    let Parsed::Event(event) = found else {
        panic!("{found:?}");
    };
    assert!(matches!(&event.kind, EventKind::Other { kind, .. } if kind == "hologram"));
    assert_eq!((event.t, event.w), (500_000, 2_000_000));
    let again = again(&event.kind);
    let EventKind::Other { line: kept, .. } = again.kind else {
        panic!("{again:?}");
    };
    let kept = String::from_utf8(kept.to_vec()).unwrap();
    assert!(kept.contains(r#""of":{"x":[1]},"new":"\u0000""#), "{kept}");
    let newer = parse_line(&sealed(br#"{"acpr":2,"id":"x""#));
    assert!(
        matches!(newer, Parsed::Invalid(fault) if fault.to_string().contains("newer acp-relay"))
    );
}

fn sealed(content: &[u8]) -> Bytes {
    let sum = crc32c::crc32c(content);
    [content, format!(",\"crc\":\"{sum:08x}\"}}\n").as_bytes()]
        .concat()
        .into()
}

/// A damaged or malicious line may still have a valid checksum.
#[test]
fn invalid_message_kind_is_none() {
    for (is, kind) in [
        ("\"request\"", Some(Kind::Request)),
        (" \"request\" ", Some(Kind::Request)),
        ("\u{c}", None),
        ("\"", None),
        ("\"\"", None),
        ("7", None),
    ] {
        let content = r#"{"n":1,"t":0,"w":0,"k":"msg","h":"agent","d":"<","m":{},"is":"#;
        let Parsed::Event(event) = parse_line(&sealed(format!("{content}{is}").as_bytes())) else {
            panic!("{is:?} is an event");
        };
        let EventKind::Message(message) = event.kind else {
            panic!("{is:?} is of a message");
        };
        assert_eq!(message.kind, kind, "{is:?}");
    }
}

#[test]
fn requests_find_their_answers_in_both_directions() {
    let mut conversation = Exchanges::default();
    let mut n = 0;
    let mut see = |hop, to, kind, id: &str, answers| {
        n += 1;
        let mut message = message();
        (message.edge, message.to, message.kind) = (hop, to, Some(kind));
        (message.id, message.answers) = (Some(id.to_owned()), answers);
        let what = EventKind::Message(Box::new(message));
        let event = RecordedEvent {
            n,
            t: n * 10,
            w: 0,
            kind: what,
        };
        conversation.add(&event).cloned()
    };
    use Kind::{Error, Request, Result};
    use Side::{Agent, Client};
    see(Client, Agent, Request, "0", None);
    see(Agent, Client, Request, "0", None);
    let to_agent = see(Client, Agent, Error, "0", Some(2)).unwrap();
    assert_eq!((to_agent.n, to_agent.duration()), (2, Some(10)));
    assert!(to_agent.answer.unwrap().failed);
    let to_client = see(Agent, Client, Result, "0", None).unwrap();
    assert_eq!((to_client.n, to_client.duration()), (1, Some(30)));
    assert_eq!(see(Agent, Client, Result, "9", None), None);
    assert_eq!(conversation.exchanges().len(), 2);
}
