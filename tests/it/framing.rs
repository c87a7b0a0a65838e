//! Decoding streams into messages and encoding messages into streams, however the bytes arrive.

use acp_relay::jsonrpc::framing::{Decoded, Decoder, Framing};
use acp_relay::jsonrpc::{Frame, FrameError, FrameFault, Id, IdBuf, Limits, Role};
use bytes::BytesMut;
use proptest::prelude::*;
use serde::Deserialize;

const MAX: usize = 1 << 20;

/// What was decoded from a stream.
#[derive(Debug, PartialEq)]
struct Received {
    framing: Option<Framing>,
    items: Vec<Decoded>,
    fatal: Option<Box<FrameError>>,
}

/// Feeds a stream in chunks that end at `ends` and at the end of the stream.
fn receive(framing: Option<Framing>, max: usize, stream: &[u8], ends: &[usize]) -> Received {
    let mut decoder = Decoder::new(framing, max, &Limits::default());
    let mut buffer = BytesMut::new();
    let mut items = Vec::new();
    let mut fatal = None;
    let mut from = 0;
    for &end in ends.iter().chain([&stream.len()]) {
        buffer.extend_from_slice(&stream[from..end]);
        from = end;
        loop {
            match decoder.decode(&mut buffer) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => break,
                Err(error) => {
                    fatal = Some(error);
                    let framing = decoder.framing();
                    return Received {
                        framing,
                        items,
                        fatal,
                    };
                }
            }
        }
    }
    items.extend(decoder.finish(&mut buffer));
    assert!(buffer.is_empty(), "bytes are left over: {buffer:?}");
    assert_eq!(decoder.finish(&mut buffer), None, "a stream ends once");
    Received {
        framing: decoder.framing(),
        items,
        fatal,
    }
}

/// The items as text: errors after `!`, a fatal one after `!!`.
fn texts(received: &Received) -> Vec<String> {
    let text = |item: &Decoded| match item {
        Decoded::Frame(frame) => String::from_utf8_lossy(frame.as_bytes()).into_owned(),
        Decoded::Error(error) => format!("! {}", error.fault),
    };
    let fatal = received
        .fatal
        .iter()
        .map(|error| format!("!! {}", error.fault));
    received.items.iter().map(text).chain(fatal).collect()
}

/// A line of `tests/vectors/jsonrpc/streams.jsonl`: a stream, its items, and the framing it shows.
#[derive(Deserialize)]
struct StreamCase {
    given: Option<String>,
    stream: String,
    items: Vec<String>,
    shown: Option<String>,
}

fn framing(name: Option<String>) -> Option<Framing> {
    name.map(|name| match &*name {
        "ndjson" => Framing::Ndjson,
        "content-length" => Framing::ContentLength,
        _ => panic!("no framing: {name}"),
    })
}

/// Each stream is fed whole, byte by byte, and in two parts, split at every place.
#[test]
fn streams_are_decoded_the_same_however_they_are_split() {
    for line in include_str!("../vectors/jsonrpc/streams.jsonl").lines() {
        let case: StreamCase = serde_json::from_str(line).unwrap();
        let (given, shown) = (framing(case.given), framing(case.shown));
        let stream = case.stream.as_bytes();
        let whole = receive(given, MAX, stream, &[]);
        let text = String::from_utf8_lossy(stream);
        assert_eq!(texts(&whole), case.items, "{text:?}");
        assert_eq!(whole.framing, shown, "{text:?}");
        let bytes: Vec<_> = (0..stream.len()).collect();
        assert_eq!(
            receive(given, MAX, stream, &bytes),
            whole,
            "{text:?} by the byte"
        );
        for end in bytes {
            assert_eq!(
                receive(given, MAX, stream, &[end]),
                whole,
                "{text:?} split at {end}"
            );
        }
    }
}

#[test]
fn header_blocks_are_bounded() {
    let limits = Limits::default();
    let many = "X: y\n".repeat(limits.header_fields + 1);
    let long = format!("X: {}\n", "y".repeat(limits.header_bytes));
    let endless = "y".repeat(limits.header_bytes + 1);
    for stream in [many, long, endless] {
        let received = receive(Some(Framing::ContentLength), MAX, stream.as_bytes(), &[]);
        let fault = received.fatal.expect("the stream ends").fault;
        assert!(matches!(fault, FrameFault::BadHeader { .. }), "{fault:?}");
    }
    let most = format!(
        "{}Content-Length: 2\n\n{{}}",
        "X: y\n".repeat(limits.header_fields - 1)
    );
    let received = receive(Some(Framing::ContentLength), MAX, most.as_bytes(), &[]);
    assert_eq!(texts(&received), ["{}"]);
}

#[test]
fn over_long_messages_are_named_and_skipped() {
    let max = 100;
    let long = format!(r#"{{"id":7,"method":"m","params":"{}"}}"#, "x".repeat(200));
    let fits = format!("{:<100}", r#"{"id":8,"method":"m"}"#);
    let line = format!("{long}\n{fits}\n{fits}\r\n{fits} \n{long}");
    let blocks = format!(
        "Content-Length: {}\n\n{long}Content-Length: 100\n\n{fits}Content-Length: 101\n\n{fits} ",
        long.len()
    );
    for (stream, kinds) in [(line, "!..!!"), (blocks, "!.!")] {
        let stream = stream.as_bytes();
        let whole = receive(None, max, stream, &[]);
        let seen: String = whole
            .items
            .iter()
            .map(|item| {
                if matches!(item, Decoded::Frame(_)) {
                    '.'
                } else {
                    '!'
                }
            })
            .collect();
        assert_eq!(seen, kinds);
        let Decoded::Error(first) = &whole.items[0] else {
            panic!("the first one is too long")
        };
        assert_eq!(
            **first,
            FrameError {
                fault: FrameFault::TooLong { limit: max },
                at: max,
                id: Id::Number(b"7").to_owned(),
                role: Some(Role::Call),
                json_like: true,
            }
        );
        for size in 1..60 {
            let ends: Vec<_> = (0..stream.len()).step_by(size).collect();
            assert_eq!(receive(None, max, stream, &ends), whole, "chunks of {size}");
        }
    }
}

#[test]
fn a_line_is_decoded_without_a_copy() {
    let mut buffer = BytesMut::from(&b"{\"id\":1}\n{}\n"[..]);
    let place = buffer.as_ptr();
    let mut decoder = Decoder::new(None, MAX, &Limits::default());
    let Ok(Some(Decoded::Frame(frame))) = decoder.decode(&mut buffer) else {
        panic!("a line is there")
    };
    assert_eq!(frame.as_bytes().as_ptr(), place);
}

#[test]
fn a_pretty_printed_message_becomes_one_line() {
    let pretty = "{\r\n  \"id\": 1,\n  \"method\": \"a\\nb\"\n}";
    let mut out = BytesMut::new();
    Framing::ContentLength.encode(&Frame::from(pretty), &mut out);
    assert_eq!(
        out,
        format!("Content-Length: {}\r\n\r\n{pretty}", pretty.len())
    );
    let received = receive(None, MAX, &out, &[]);
    let Decoded::Frame(frame) = &received.items[0] else {
        panic!("a message is there")
    };
    assert_eq!(frame.as_bytes(), pretty.as_bytes());
    out.clear();
    Framing::Ndjson.encode(frame, &mut out);
    assert_eq!(&out[..], b"{    \"id\": 1,   \"method\": \"a\\nb\" }\n");
}

#[test]
fn the_error_of_a_truncated_message_has_its_id_and_role() {
    let stream = b"Content-Length: 99\n\n{\"id\":\"x\",\"result\":[";
    let received = receive(None, MAX, stream, &[]);
    let Some(Decoded::Error(error)) = received.items.last() else {
        panic!("an error is there")
    };
    assert_eq!(error.id, Id::String(b"\"x\"").to_owned());
    assert_eq!(error.role, Some(Role::Answer));
    let stray = receive(None, 10, b"a long line of words", &[]);
    let Some(Decoded::Error(error)) = stray.items.last() else {
        panic!("an error is there")
    };
    assert_eq!((error.json_like, &error.id), (false, &IdBuf::default()));
}

/// Places at which a stream of `length` bytes is split.
fn places(length: usize, picks: &[prop::sample::Index]) -> Vec<usize> {
    let mut ends: Vec<_> = picks.iter().map(|pick| pick.index(length + 1)).collect();
    ends.sort_unstable();
    ends
}

proptest! {
    #[test]
    fn encoded_messages_are_decoded_unchanged(
        messages in proptest::collection::vec("[{\\[]([a-z \u{e9}\r\n]{0,20}|[x]{0,300})[}\\]]", 1..8),
        framing in prop::sample::select(vec![Framing::Ndjson, Framing::ContentLength]),
        sniffed in any::<bool>(),
        picks in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut stream = BytesMut::new();
        for text in &messages {
            framing.encode(&Frame::from(text.clone()), &mut stream);
        }
        let given = (!sniffed).then_some(framing);
        let received = receive(given, MAX, &stream, &places(stream.len(), &picks));
        // An array shows no framing.
        let shows_none = framing == Framing::Ndjson && received.framing.is_none();
        prop_assert!(shows_none || received.framing == Some(framing));
        prop_assert_eq!(&received.fatal, &None);
        let expected: Vec<_> = messages
            .iter()
            .map(|text| match framing {
                Framing::Ndjson => text.replace(['\n', '\r'], " "),
                Framing::ContentLength => text.clone(),
            })
            .collect();
        prop_assert_eq!(texts(&received), expected);
    }

    #[test]
    fn any_stream_is_decoded_the_same_however_it_is_split(
        pieces in proptest::collection::vec(prop_oneof![
            Just(&b"Content-Length: 2\r\n\r\n{}"[..]),
            Just(&b"Content-Length: 40\n\n"[..]),
            Just(&b"content-type:x\n"[..]),
            Just(&b"{\"id\":1,\"method\":\"m\"}"[..]),
            Just(&b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"[..]),
            Just(&b"[1,"[..]),
            Just(&b"\n"[..]),
            Just(&b"\r\n"[..]),
            Just(&b"\r"[..]),
            Just(&b" "[..]),
            Just(&b":"[..]),
            Just(&b"\xEF\xBB\xBF"[..]),
            Just(&b"\xEF\xBB"[..]),
        ], 0..14),
        given in prop::sample::select(vec![None, Some(Framing::Ndjson), Some(Framing::ContentLength)]),
        max in prop::sample::select(vec![0, 1, 10, 30, 45, MAX]),
        picks in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let stream = pieces.concat();
        let whole = receive(given, max, &stream, &[]);
        prop_assert_eq!(receive(given, max, &stream, &places(stream.len(), &picks)), whole);
    }
}

#[test]
fn framing_is_detected_from_the_first_line() {
    use Framing::{ContentLength, Ndjson};
    let cases: &[(&str, Option<Framing>)] = &[
        ("", None),
        ("{", Some(Ndjson)),
        ("[", None),
        ("[ {", Some(Ndjson)),
        ("[info] starting", None),
        (" \t{\"id\":1}", Some(Ndjson)),
        ("Content-Length: 5", Some(ContentLength)),
        ("content-length:5", Some(ContentLength)),
        ("CONTENT-TYPE \t: x", Some(ContentLength)),
        ("Content-Length", None),
        ("Content-Length\n: 5", None),
        ("\n{", Some(Ndjson)),
        ("Content-Lengthy: 5", None),
        (" Content-Length: 5", None),
        ("Content-Encoding: x", None),
        ("starting {", None),
        ("\"{\"", None),
    ];
    for (line, framing) in cases {
        let mut decoder = Decoder::new(None, MAX, &Limits::default());
        decoder.decode(&mut BytesMut::from(*line)).unwrap();
        assert_eq!(decoder.framing(), *framing, "{line:?}");
    }
}
