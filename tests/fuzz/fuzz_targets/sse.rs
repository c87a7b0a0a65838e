//! Any stream of events in any chunks: the same events as when it comes at once, and none longer
//! than permitted.

#![no_main]

use acp_relay::transport::http::client::{SseEvent, SseReader};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fn read(max: usize, stream: &[u8], chunk: usize) -> (Vec<SseEvent>, Vec<u8>) {
    let mut sse = SseReader::new(max);
    let mut events = Vec::new();
    for chunk in stream.chunks(chunk) {
        sse.feed(Bytes::copy_from_slice(chunk));
        while let Some(event) = sse.next() {
            events.push(event);
        }
    }
    (events, sse.last_id().to_vec())
}

fuzz_target!(|input: &[u8]| {
    let [chunk, max, stream @ ..] = input else {
        return;
    };
    let max = usize::from(*max) * 8;
    let whole = read(max, stream, stream.len().max(1));
    assert_eq!(read(max, stream, usize::from(*chunk).max(1)), whole);
    for event in whole.0 {
        let (SseEvent::Whole(data) | SseEvent::TooLong(data)) = event;
        assert!(!data.is_empty() || max == 0);
        assert!(data.len() <= max);
    }
});
