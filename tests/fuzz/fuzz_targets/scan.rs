//! Any bytes: the scanner agrees with serde_json on what is JSON, its spans hold the members,
//! the lines before a line make no difference, and what is found in a dirty line is JSON.

#![no_main]

use std::sync::Arc;

use acp_relay::jsonrpc::{
    FrameFault, Frame, Id, Kind, Limits, Scanner, Scanned, is_json, pieces,
    reply, scan, scan_head,
};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;

fuzz_target!(|text: &[u8]| {
    let limits = Limits {
        nesting: 1024,
        ..Limits::default()
    };
    let mut scanner = Scanner::new(Arc::new(limits.clone()));
    for line in text.split(|byte| *byte == b'\n') {
        // It learns from messages that come more than a few times.
        for _ in 0..9 {
            let mut frame = Frame::new(line.to_vec());
            assert_eq!(scanner.scan(&mut frame), scan(&frame, &limits));
        }
    }
    let found = pieces(text, &limits);
    let mut end = 0;
    for object in &found.objects {
        assert!(end <= object.start && text[object.start] == b'{');
        end = object.end;
        if std::str::from_utf8(&text[object.clone()]).is_ok() {
            assert!(is_json(&text[object.clone()], &limits));
        }
    }
    let oracle = serde_json::from_slice::<&RawValue>(text).is_ok();
    let frame = Frame::new(text.to_vec());
    let shape = scan(&frame, &limits);
    let deep = matches!(&shape, Scanned::Invalid(error) if matches!(error.fault, FrameFault::TooDeep { .. }));
    if !deep {
        assert_eq!(is_json(text, &limits), oracle);
    }
    match shape {
        Scanned::Message(envelope) => {
            assert!(oracle);
            let valid = |text| serde_json::from_slice::<&RawValue>(text).is_ok();
            match envelope.id(&frame) {
                Id::Number(id) | Id::String(id) => assert!(valid(id)),
                Id::Absent | Id::Null => {}
            }
            assert!(envelope.body(&frame).is_none_or(valid));
            let call = matches!(envelope.kind, Kind::Request | Kind::Notification);
            assert_eq!(envelope.method.is_some(), call);
            let _ = (
                envelope.method(&frame),
                reply::read_notice(&frame, &envelope),
            );
            let (id, _) = scan_head(text, &limits);
            assert_eq!(id, envelope.id(&frame).to_owned());
        }
        Scanned::Batch => assert!(oracle),
        Scanned::Invalid(error) => {
            let malformed = matches!(error.fault, FrameFault::Malformed { .. });
            assert!(deep || malformed != oracle);
            assert!(matches!(scan(&reply::frame_error(&error), &limits), Scanned::Message(_)));
        }
    }
});
