//! Any bytes as a recording: every line is read or reported as invalid, and an event that was read
//! can be written and read again.

#![no_main]

use std::io::Cursor;

use acp_relay::recording::write::{self, Stamp};
use acp_relay::recording::{Exchanges, PackedReader, Parsed, SegmentReader, parse_line, verify_segment};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let mut exchanges = Exchanges::default();
    let mut at = 0;
    let mut reader = SegmentReader::new(Cursor::new(text));
    for entry in reader.by_ref() {
        let entry = entry.expect("memory can be read");
        assert_eq!(entry.at, at);
        at += entry.line.len() as u64;
        if let Parsed::Event(event) = entry.parsed {
            exchanges.add(&event);
            let stamp = Stamp {
                n: event.n,
                t: event.t,
                w: event.w,
            };
            let mut out = Vec::new();
            write::event(&mut out, stamp, &event.kind);
            assert!(matches!(parse_line(&out.into()), Parsed::Event(_)));
        }
    }
    assert_eq!(at + reader.torn_bytes(), text.len() as u64);
    // The same lines with a valid checksum.
    let mut sealed = Vec::new();
    for part in text.split(|byte| *byte == b'\n') {
        sealed.extend_from_slice(part);
        let sum = crc32c::crc32c(part);
        sealed.extend_from_slice(format!(",\"crc\":\"{sum:08x}\"}}\n").as_bytes());
    }
    let _ = verify_segment(SegmentReader::new(Cursor::new(&sealed)));
    if let Ok(packed) = PackedReader::new(Cursor::new(text)) {
        let _ = SegmentReader::new(packed).take(100).count();
    }
});
