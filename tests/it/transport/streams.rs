//! Byte streams: partial reads and writes, framings, and limits of memory.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use acp_relay::jsonrpc::Frame;
use acp_relay::jsonrpc::framing::Framing;
use acp_relay::transport::{CloseReason, Setup, stream};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex};

use crate::support::link::{close, feed, flush, next, ready, received, run, send, setup};

const MAX: usize = 16 << 20;

/// Writes one byte of each buffer, and is pending at every third call.
struct PartialWriter {
    written: Vec<u8>,
    calls: usize,
    vectored: bool,
}

impl AsyncWrite for PartialWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.calls += 1;
        if self.calls.is_multiple_of(3) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let count = bytes.len().min(1);
        self.written.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // Ends in the middle of the second slice, if there are two.
        let first = slices[0].len();
        let second = slices.get(1).map_or(0, |slice| slice.len() / 2);
        self.written.extend_from_slice(&slices[0]);
        if second > 0 {
            self.written.extend_from_slice(&slices[1][..second]);
        }
        Poll::Ready(Ok(first + second))
    }

    fn is_write_vectored(&self) -> bool {
        self.vectored
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn with(framing: Framing) -> Setup {
    Setup {
        framing: Some(framing),
        ..setup()
    }
}

#[test]
fn partial_writes_leave_whole_messages() {
    let frames: Vec<Frame> = [3, 100, 20_000, 5, 40_000, 16_384, 16_383, 1]
        .into_iter()
        .map(|size| Frame::from("y".repeat(size)))
        .collect();
    for framing in [Framing::Ndjson, Framing::ContentLength] {
        let mut expected = bytes::BytesMut::new();
        for frame in &frames {
            framing.encode(frame, &mut expected);
        }
        for vectored in [false, true] {
            let mut partial = PartialWriter {
                written: Vec::new(),
                calls: 0,
                vectored,
            };
            run(async {
                let empty = tokio::io::empty();
                let (_, mut writer) = stream::halves(empty, &mut partial, MAX, &with(framing));
                for frame in &frames {
                    feed(&mut writer, frame.clone()).await.unwrap();
                }
                close(&mut writer, CloseReason::Done).await.unwrap();
            });
            assert!(partial.written == expected, "{framing:?} {vectored}");
        }
    }
}

#[test]
fn a_writer_holds_a_bounded_amount() {
    run(async {
        let (near, far) = duplex(1);
        let (_, mut writer) = stream::halves(tokio::io::empty(), near, MAX, &setup());
        let mut given = 0;
        let line = "z".repeat(999);
        let stalled = std::time::Duration::ZERO;
        while let Ok(ready) = tokio::time::timeout(stalled, ready(&mut writer)).await {
            ready.unwrap();
            transport::FrameSink::start_send(&mut writer, line.clone().into()).unwrap();
            given += 1000;
            assert!(given <= 67_000, "the writer has no limit");
        }
        assert!(given >= 64_000, "the writer pauses too early: {given}");
        drop(far);
        flush(&mut writer).await.unwrap_err();
    });
}

#[test]
fn we_answer_in_the_framing_the_peer_uses() {
    run(async {
        let (near, mut far) = duplex(4096);
        let (reading, writing) = tokio::io::split(near);
        let (mut reader, mut writer) = stream::halves(reading, writing, MAX, &setup());
        let mut buffer = vec![0; 4096];
        // The peer has sent nothing yet.
        send(&mut writer, r#"{"id":0}"#).await.unwrap();
        let count = far.read(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..count], b"{\"id\":0}\n");
        let pretty = "{\n  \"id\": 1\n}";
        let head = format!("Content-Length: {}\r\n\r\n", pretty.len());
        far.write_all(head.as_bytes()).await.unwrap();
        far.write_all(pretty.as_bytes()).await.unwrap();
        assert_eq!(received(&mut reader).await.as_bytes(), pretty.as_bytes());
        send(&mut writer, r#"{"id":2}"#).await.unwrap();
        let count = far.read(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..count], b"Content-Length: 8\r\n\r\n{\"id\":2}");
    });
}

#[test]
fn a_stream_with_an_invalid_header_ends() {
    run(async {
        let (near, mut far) = duplex(4096);
        let (mut reader, _) = stream::halves(near, tokio::io::sink(), MAX, &setup());
        far.write_all(b"Content-Length: nine\r\n\r\n{}{}{}")
            .await
            .unwrap();
        next(&mut reader).await.unwrap().unwrap_err();
        assert!(next(&mut reader).await.is_none());
        // The peer's stream is still open; nothing more is read from it.
        far.write_all(b"{\"id\":1}\n").await.unwrap();
        assert!(next(&mut reader).await.is_none());
    });
}
