//! How much memory a WebSocket keeps, and how it sends messages that are larger than its buffers.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use acp_relay::transport::FrameSink;
use acp_relay::transport::websocket::{Data, Half, Role, halves};
use allocation_counter::measure;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::timeout;

use crate::support::websocket::frame;

/// Length of a message that is larger than any buffer.
const LARGE: usize = 256 << 10;
/// Bytes of each frame that it is sent in, with a head of ten bytes.
const FRAME: usize = (80 << 10) + 10;
/// Bytes of all of them: three, and the rest with a head of four.
const FRAMES: usize = LARGE + 3 * 10 + 4;
/// How much memory a connection may keep when it is idle, in bytes.
const KEPT: i64 = 24 << 10;

/// Sends back the next message.
async fn echo([receiver, sender]: &mut [Half<DuplexStream>; 2]) {
    let (kind, text) = poll_fn(|cx| receiver.poll_message(cx))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(kind, Data::Text);
    poll_fn(|cx| sender.poll_ready(cx)).await.unwrap();
    sender.start_message(kind, text).unwrap();
    poll_fn(|cx| sender.poll_flush(cx)).await.unwrap();
}

async fn stay_idle([receiver, _]: &mut [Half<DuplexStream>; 2]) {
    let silence = poll_fn(|cx| receiver.poll_message(cx));
    let received = timeout(Duration::from_secs(5), silence).await;
    assert!(received.is_err(), "{received:?}");
}

/// A server and the far end of its stream.
fn server() -> ([Half<DuplexStream>; 2], DuplexStream) {
    let (near, far) = duplex(1 << 10);
    (halves(near, &[], Role::Server, &Arc::default()), far)
}

/// In virtual time.
fn run<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(test)
}

#[test]
fn the_memory_of_a_large_message_is_released() {
    let bytes = frame(0x81, &[b'x'; LARGE]);
    let mut answer = vec![0; FRAMES];
    let mut kept = None;
    // What a process allocates once, for its first runtime, is not counted.
    run(stay_idle(&mut server().0));
    let used = measure(|| {
        kept = Some(run(async {
            let (mut server, mut far) = server();
            let client = async {
                far.write_all(&bytes).await.unwrap();
                far.read_exact(&mut answer).await.unwrap();
            };
            tokio::join!(client, echo(&mut server));
            stay_idle(&mut server).await;
            (server, far)
        }));
    });
    assert!(used.bytes_max > LARGE as u64, "{used:?}");
    assert!(used.bytes_current < KEPT, "{used:?}");
    drop(kept);
}

#[test]
fn a_frame_head_may_arrive_in_two_parts_with_a_pause_between() {
    run(async {
        let (mut server, mut far) = server();
        let bytes = frame(0x81, &[b'x'; LARGE]);
        let mut answer = vec![0; FRAMES];
        // The buffers have grown, and the head of the next message has begun.
        for cut in 0..14 {
            let client = async {
                far.write_all(&bytes[cut..]).await.unwrap();
                far.read_exact(&mut answer).await.unwrap();
                far.write_all(&bytes[..cut + 1]).await.unwrap();
            };
            tokio::join!(client, echo(&mut server));
            stay_idle(&mut server).await;
        }
    });
}

#[test]
fn a_long_message_is_sent_in_fragments() {
    run(async {
        let (mut server, mut far) = server();
        let client = async {
            far.write_all(&frame(0x81, &[b'x'; LARGE])).await.unwrap();
            let mut answer = vec![0; FRAMES];
            far.read_exact(&mut answer).await.unwrap();
            let heads = answer.chunks(FRAME);
            heads.map(|frame| frame[0]).collect::<Vec<_>>()
        };
        let (firsts, ()) = tokio::join!(client, echo(&mut server));
        assert_eq!(firsts, [0x01, 0x00, 0x00, 0x80]);
    });
}

#[test]
fn pongs_that_wait_take_bounded_memory() {
    let pings = frame(0x89, &[b'p'; 125]).repeat(1000);
    let used = measure(|| {
        run(async {
            let ([mut receiver, _sender], mut far) = server();
            // The 2.6 MB of pongs are not read.
            let flood = async {
                for _ in 0..20 {
                    far.write_all(&pings).await.unwrap();
                }
            };
            tokio::select! {
                () = flood => {}
                received = poll_fn(|cx| receiver.poll_message(cx)) => panic!("{received:?}"),
            }
        });
    });
    assert!(used.bytes_max < 512 << 10, "{used:?}");
}
