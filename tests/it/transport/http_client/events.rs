//! Server-sent events: streams are read by the WHATWG's rules, however they are split.

use std::time::Duration;

use acp_relay::transport::http::client::{SseEvent, SseReader};
use bytes::Bytes;
use proptest::prelude::*;

fn read(max: usize, chunks: &[&[u8]]) -> (Vec<SseEvent>, SseReader) {
    let mut sse = SseReader::new(max);
    let mut events = Vec::new();
    for chunk in chunks {
        sse.feed(Bytes::copy_from_slice(chunk));
        events.extend(std::iter::from_fn(|| sse.next()));
    }
    (events, sse)
}

fn whole(texts: &[&'static str]) -> Vec<SseEvent> {
    let whole = |text: &&'static str| SseEvent::Whole(Bytes::from_static(text.as_bytes()));
    texts.iter().map(whole).collect()
}

#[test]
fn streams_are_read_by_the_standard() {
    // stream, data of its events, last id
    let cases: [(&str, &[&str], &str); 16] = [
        ("data: {}\n\n", &["{}"], ""),
        ("data:{}\r\n\r\n", &["{}"], ""),
        ("data: {}\r\r", &["{}"], ""),
        ("data:  two\n\n", &[" two"], ""),
        ("\u{feff}data: 1\n\n\u{feff}data: 2\n\n", &["1"], ""),
        ("data: 1\ndata: 2\ndata\n\n", &["1\n2\n"], ""),
        (": comment\n:\n\ndata: 1\n\n", &["1"], ""),
        ("event: acp\nid: 7\ndata: 1\n\n", &["1"], "7"),
        ("id: 7\n\nid: 8\ndata: 1", &[], "7"),
        ("id: 7\ndata: 1\n\nid\ndata: 2\n\n", &["1", "2"], ""),
        ("id: 7\n\nid: 8\0\n\n", &[], "7"),
        ("data\n\ndata:\n\ndata: \n\n", &[], ""),
        ("data: 1\n\ndata: 2\n", &["1"], ""),
        ("Data: 1\n data: 2\ndatas: 3\n\n", &[], ""),
        ("data: a:b\n\n", &["a:b"], ""),
        ("id: a\ndata: 1\n\ndata: 2\n\n", &["1", "2"], "a"),
    ];
    for (stream, data, id) in cases {
        let (events, sse) = read(100, &[stream.as_bytes()]);
        assert_eq!(events, whole(data), "{stream:?}");
        assert_eq!(sse.last_id(), id.as_bytes(), "{stream:?}");
    }
}

#[test]
fn an_event_has_its_own_name_or_none() {
    for (stream, name) in [
        ("event: messages/partial\ndata: 1\n\n", "messages/partial"),
        ("event: a\nevent: b\ndata: 1\n\n", "b"),
        ("event: a\ndata: 1\n\ndata: 2\n\n", ""),
        ("data: 1\n\nevent: begun\n", ""),
        ("event: a\n\ndata: 1\n\n", ""),
    ] {
        let (_, sse) = read(100, &[stream.as_bytes()]);
        assert_eq!(sse.last_name(), name.as_bytes(), "{stream:?}");
    }
}

#[test]
fn the_retry_field_must_be_a_number() {
    for (stream, wait) in [
        ("retry: 250\n", Some(250)),
        ("retry: 1\nretry: x\nretry:\nretry: -1\n", Some(1)),
        ("retry: 99999999999999999999999\n", Some(u64::MAX)),
        ("retry\n", None),
    ] {
        let (_, sse) = read(100, &[stream.as_bytes()]);
        assert_eq!(sse.retry(), wait.map(Duration::from_millis), "{stream:?}");
    }
}

#[test]
fn a_partial_event_is_discarded_when_the_stream_is_reopened() {
    let mut sse = SseReader::new(100);
    sse.feed(Bytes::from_static(
        b"retry: 5\nid: 1\ndata: 1\n\nid: 2\ndata: lost\ndat",
    ));
    assert_eq!(sse.next(), Some(whole(&["1"])[0].clone()));
    assert_eq!(sse.next(), None);
    sse.reopened();
    assert_eq!(sse.last_id(), b"1");
    assert_eq!(sse.retry(), Some(Duration::from_millis(5)));
    sse.feed(Bytes::from_static(b"data: 2\n\n"));
    assert_eq!(sse.next(), Some(whole(&["2"])[0].clone()));
    assert_eq!(sse.last_id(), b"1");
}

#[test]
fn an_id_that_is_too_long_for_a_header_is_ignored() {
    let stream = format!("id: 1\ndata: 1\n\nid: {}\ndata: 2\n\n", "x".repeat(1025));
    let (events, sse) = read(100, &[stream.as_bytes()]);
    assert_eq!(events, whole(&["1", "2"]));
    assert_eq!(sse.last_id(), b"");
}

#[test]
fn over_long_events_keep_their_beginning_and_those_after_them_are_whole() {
    let limit = 10;
    for long in [
        "data: 12345678901\n\n".to_owned(),
        format!("data: 1234567890{}\n\n", "x".repeat(1000)),
        "data: 12345\ndata: 67890\ndata: 1\n\n".to_owned(),
    ] {
        let stream = format!("{long}data: 1234567890\n\n");
        let (events, _) = read(limit, &[stream.as_bytes()]);
        let [SseEvent::TooLong(head), after] = &events[..] else {
            panic!("{stream:?}: {events:?}");
        };
        assert!(
            head.len() == limit && head.starts_with(b"12345"),
            "{head:?}"
        );
        assert_eq!(*after, whole(&["1234567890"])[0]);
    }
}

#[test]
fn a_million_small_lines_of_one_event_take_no_longer_than_their_bytes() {
    let stream = "data:\n".repeat(1 << 20) + "\n";
    let (events, _) = read(usize::MAX / 2, &[stream.as_bytes()]);
    assert!(matches!(&events[..], [SseEvent::Whole(data)] if data.len() == (1 << 20) - 1));
}

/// Valid lines, in any order.
fn streams() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "data: ?[a-z:\u{e9} ]{0,12}",
        "id: ?[0-9a-z]{0,3}",
        "retry: ?[0-9x]{1,3}",
        ":.{0,4}",
        "[a-z]{0,6}",
        Just(String::new()),
    ];
    let end = prop_oneof![Just("\n"), Just("\r"), Just("\r\n")];
    prop::collection::vec((line, end), 0..40).prop_map(|lines| {
        let lines = lines.into_iter().map(|(line, end)| line + end);
        lines.collect()
    })
}

proptest! {
    #[test]
    fn events_are_the_same_however_the_stream_is_split(
        stream in streams(),
        max in 0_usize..24,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let bytes = stream.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let (events, split) = read(max, &chunks);
        let (at_once, sse) = read(max, &[bytes]);
        prop_assert_eq!(events, at_once);
        prop_assert_eq!(split.last_id(), sse.last_id());
        prop_assert_eq!(split.retry(), sse.retry());
    }
}
