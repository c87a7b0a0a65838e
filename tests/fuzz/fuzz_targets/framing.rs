//! Any stream in any chunks: the same items are decoded as when it comes at once.

#![no_main]

use acp_relay::jsonrpc::framing::{Decoded, Decoder, Framing};
use acp_relay::jsonrpc::{FrameError, Limits};
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;

fn decode(
    framing: Option<Framing>,
    max: usize,
    stream: &[u8],
    chunk: usize,
) -> Vec<Result<Decoded, Box<FrameError>>> {
    let mut decoder = Decoder::new(framing, max, &Limits::default());
    let mut buffer = BytesMut::new();
    let mut decoded = Vec::new();
    for chunk in stream.chunks(chunk) {
        buffer.extend_from_slice(chunk);
        loop {
            match decoder.decode(&mut buffer) {
                Ok(Some(item)) => decoded.push(Ok(item)),
                Ok(None) => break,
                Err(error) => {
                    decoded.push(Err(error));
                    return decoded;
                }
            }
        }
    }
    decoded.extend(decoder.finish(&mut buffer).map(Ok));
    assert!(buffer.is_empty());
    decoded
}

fuzz_target!(|input: &[u8]| {
    let [mode, chunk, max, stream @ ..] = input else {
        return;
    };
    let framing = match mode % 3 {
        0 => None,
        1 => Some(Framing::Ndjson),
        _ => Some(Framing::ContentLength),
    };
    let max = usize::from(*max) * 8;
    let whole = decode(framing, max, stream, stream.len().max(1));
    assert_eq!(
        decode(framing, max, stream, usize::from(*chunk).max(1)),
        whole
    );
    for item in whole.into_iter().flatten() {
        if let Decoded::Frame(frame) = item {
            // A stray line among header blocks is bounded by the header block.
            assert!(frame.len() <= max.max(Limits::default().header_bytes));
        }
    }
});
