//! The file format: what is written is what is read.

use std::io::Cursor;

use acp_relay::jsonrpc::{Kind, Side};
use acp_relay::recording::write::{self, FrameInfo, Stamp};
use acp_relay::recording::{
    EventKind, Exchanges, Header, Parsed, Payload, RecordedEvent, SegmentReader, parse_line,
};
use bytes::Bytes;
use proptest::prelude::*;

fn event(content: &str) -> RecordedEvent {
    match parse_line(&sealed(content.as_bytes())) {
        Parsed::Event(event) => *event,
        other => panic!("{content}: {other:?}"),
    }
}

/// `tests/vectors/inspect/lines.acpr`: headers, and events of all kinds with all members.
#[test]
fn each_line_is_written_as_it_was_read() {
    let lines = include_str!("../../vectors/inspect/lines.acpr");
    for line in lines.split_inclusive('\n') {
        let mut out = Vec::new();
        match parse_line(&Bytes::from(line)) {
            Parsed::Header(header) => write::header(&mut out, &header),
            Parsed::Event(event) => {
                let known = !matches!(event.kind, EventKind::Other { .. });
                assert_eq!(known, !line.contains("hologram"));
                write::event(&mut out, event.stamp(), &event.kind);
            }
            Parsed::Invalid(fault) => panic!("{line}: {fault}"),
        }
        assert_eq!(String::from_utf8(out).unwrap(), line);
    }
    let newer = parse_line(&sealed(br#"{"acpr":2,"id":"x""#));
    assert!(
        matches!(newer, Parsed::Invalid(fault) if fault.to_string().contains("newer acp-relay"))
    );
}

proptest! {
    #[test]
    fn any_line_is_read_without_a_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut whole = text.clone();
        whole.extend_from_slice(b",\"crc\":\"");
        let _ = parse_line(&text.into());
        let _ = parse_line(&whole.into());
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
        ("\"wish\"", None),
        ("\"\"", None),
        ("7", None),
    ] {
        let content = r#"{"n":1,"t":0,"w":0,"k":"msg","h":"agent","d":"<","m":{},"is":"#;
        let event = event(&format!("{content}{is}"));
        assert_eq!(event.message().unwrap().kind, kind, "{is}");
    }
}

#[test]
fn requests_find_their_answers_in_both_directions() {
    let mut conversation = Exchanges::default();
    let mut n = 0;
    let mut see = |members: &str| {
        n += 1;
        let event = event(&format!(
            r#"{{"n":{n},"t":0.0000{n}0,"w":0,"k":"msg","me":"a","m":{{}},{members}"#
        ));
        conversation.add(&event).cloned()
    };
    see(r#""h":"client","d":">","is":"request","id":0"#);
    see(r#""h":"agent","d":"<","is":"request","id":0"#);
    let to_agent = see(r#""h":"client","d":">","is":"error","id":0,"re":2"#).unwrap();
    assert_eq!((to_agent.n, to_agent.duration()), (2, Some(10)));
    assert!(to_agent.answer.unwrap().failed);
    let to_client = see(r#""h":"agent","d":"<","is":"result","id":0,"re":1"#).unwrap();
    assert_eq!((to_client.n, to_client.duration()), (1, Some(30)));
    assert_eq!(see(r#""h":"agent","d":"<","is":"result","id":9"#), None);
    assert_eq!(conversation.exchanges().len(), 2);
}
