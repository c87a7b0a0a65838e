//! Any stream in any chunks: the same things are cut out of it as when it comes at once.

#![no_main]

use acp_relay::jsonrpc::framing::{Cut, Cutter, Framing};
use acp_relay::jsonrpc::{Flaw, Limits};
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;

fn hear(
    framing: Option<Framing>,
    max: usize,
    stream: &[u8],
    chunk: usize,
) -> Vec<Result<Cut, Box<Flaw>>> {
    let mut cutter = Cutter::new(framing, max, &Limits::default());
    let mut buffer = BytesMut::new();
    let mut heard = Vec::new();
    for chunk in stream.chunks(chunk) {
        buffer.extend_from_slice(chunk);
        loop {
            match cutter.cut(&mut buffer) {
                Ok(Some(cut)) => heard.push(Ok(cut)),
                Ok(None) => break,
                Err(flaw) => {
                    heard.push(Err(flaw));
                    return heard;
                }
            }
        }
    }
    heard.extend(cutter.finish(&mut buffer).map(Ok));
    assert!(buffer.is_empty());
    heard
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
    let whole = hear(framing, max, stream, stream.len().max(1));
    assert_eq!(
        hear(framing, max, stream, usize::from(*chunk).max(1)),
        whole
    );
    for cut in whole.into_iter().flatten() {
        if let Cut::Frame(frame) = cut {
            // A stray line among header blocks is bounded by the header block.
            assert!(frame.len() <= max.max(Limits::default().header_bytes));
        }
    }
});
