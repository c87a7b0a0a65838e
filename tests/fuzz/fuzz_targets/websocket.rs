//! Any bytes from a WebSocket peer, in any chunks: the same is heard as when they come at once.

#![no_main]

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use acp_relay::transport::LinkError;
use acp_relay::transport::websocket::{Kind, Role, halves};
use acp_relay::jsonrpc::Limits;
use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncRead, ReadBuf};

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

type Heard = Vec<Result<(Kind, Bytes), String>>;

fn hear(bytes: &[u8], size: usize, role: Role, max: usize) -> Heard {
    let limits = Limits {
        frame_from_network: max,
        ..Limits::default()
    };
    let reader = Chunks { bytes, size };
    let (mut ear, _mouth) = halves(reader, tokio::io::sink(), BytesMut::new(), role, &limits);
    let mut cx = Context::from_waker(Waker::noop());
    let mut heard = Vec::new();
    loop {
        match ear.poll_message(&mut cx) {
            Poll::Ready(Some(Ok((kind, message)))) => {
                assert!(message.len() <= max);
                assert!(kind == Kind::Binary || std::str::from_utf8(&message).is_ok());
                heard.push(Ok((kind, message)));
            }
            Poll::Ready(Some(Err(LinkError::Framing(flaw)))) => {
                heard.push(Err(format!("{flaw:?}")))
            }
            Poll::Ready(Some(Err(fault))) => heard.push(Err(fault.to_string())),
            Poll::Ready(None) => return heard,
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
    let whole = hear(stream, usize::MAX, role, max);
    assert_eq!(hear(stream, usize::from(*chunk).max(1), role, max), whole);
});
