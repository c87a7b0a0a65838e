//! Any bytes from a WebSocket peer, in any chunks: the same messages are received as when they come
//! at once.

#![no_main]

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use acp_relay::jsonrpc::Limits;
use acp_relay::transport::websocket::{Data, Role, halves};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncRead, ReadBuf, join, sink};

struct Chunks<'a> {
    bytes: &'a [u8],
    size: usize,
}

impl AsyncRead for Chunks<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let size = self.size.min(buffer.remaining()).min(self.bytes.len());
        let (now, later) = self.bytes.split_at(size);
        buffer.put_slice(now);
        self.bytes = later;
        Poll::Ready(Ok(()))
    }
}

type Received = Vec<Result<(Data, Bytes), String>>;

fn receive(bytes: &[u8], size: usize, role: Role, max: usize) -> Received {
    let limits = Limits {
        frame_from_network: max,
        ..Limits::default()
    };
    let stream = join(Chunks { bytes, size }, sink());
    let [mut receiver, _sender] = halves(stream, &[], role, &Arc::new(limits));
    let mut cx = Context::from_waker(Waker::noop());
    let mut received = Vec::new();
    loop {
        match receiver.poll_message(&mut cx) {
            Poll::Ready(Some(Ok((kind, message)))) => {
                assert!(message.len() <= max);
                assert!(kind == Data::Binary || std::str::from_utf8(&message).is_ok());
                received.push(Ok((kind, message)));
            }
            Poll::Ready(Some(Err(fault))) => received.push(Err(fault.to_string())),
            Poll::Ready(None) => return received,
            Poll::Pending => unreachable!("neither side ever waits"),
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let [mode, chunk, max, stream @ ..] = input else {
        return;
    };
    let role = if mode % 2 == 0 {
        Role::Server
    } else {
        Role::Client
    };
    let max = usize::from(*max) * 8;
    let whole = receive(stream, usize::MAX, role, max);
    assert_eq!(receive(stream, usize::from(*chunk).max(1), role, max), whole);
});
