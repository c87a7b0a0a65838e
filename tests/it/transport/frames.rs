//! WebSocket frames to messages: the same messages are received however the peer fragments them and
//! the network splits the bytes.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use acp_relay::jsonrpc::Limits;
use acp_relay::transport::websocket::{Data, Role, halves};
use proptest::prelude::*;
use tokio::io::{AsyncRead, ReadBuf, join};

use crate::support::link::run;
use crate::support::websocket::masked;

/// Longest message of these tests, in bytes.
const MAX: usize = 40_000;

/// A message, how the peer fragments it, and its pings in between.
#[derive(Clone, Debug)]
struct Expected {
    kind: Data,
    payload: Vec<u8>,
    /// Lengths of its frames; the last has the rest.
    frames: Vec<usize>,
    ping: Option<Vec<u8>>,
    key: [u8; 4],
}

/// A message as it is received.
type Received = (Data, Vec<u8>);

/// A reader that returns its bytes in chunks of these sizes, cyclically.
struct Chunks {
    bytes: Vec<u8>,
    at: usize,
    sizes: Vec<usize>,
    turn: usize,
}

impl AsyncRead for Chunks {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let size = self.sizes[self.turn % self.sizes.len()].min(buffer.remaining());
        let end = (self.at + size).min(self.bytes.len());
        buffer.put_slice(&self.bytes[self.at..end]);
        self.at = end;
        self.turn += 1;
        Poll::Ready(Ok(()))
    }
}

impl Expected {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = &self.payload[..];
        let mut opcode = match self.kind {
            Data::Text => 1,
            _ => 2,
        };
        for length in &self.frames {
            let (now, later) = rest.split_at((*length).min(rest.len()));
            bytes.extend(masked(opcode, now, self.key));
            if let Some(ping) = &self.ping {
                bytes.extend(masked(0x89, ping, self.key));
            }
            (rest, opcode) = (later, 0);
        }
        bytes.extend(masked(0x80 | opcode, rest, self.key));
        bytes
    }
}

/// The messages received from `bytes`, and whether the stream ended with an error.
fn receive(bytes: Vec<u8>, sizes: Vec<usize>) -> (Vec<Received>, bool) {
    run(async {
        let reader = Chunks {
            bytes,
            at: 0,
            sizes,
            turn: 0,
        };
        let limits = Limits {
            frame_from_network: MAX,
            ..Limits::default()
        };
        let stream = join(reader, tokio::io::sink());
        let [mut receiver, _sender] = halves(stream, &[], Role::Server, &Arc::new(limits));
        let mut received = Vec::new();
        loop {
            match poll_fn(|cx| receiver.poll_message(cx)).await {
                Some(Ok((kind, message))) => received.push((kind, message.to_vec())),
                Some(Err(_)) => return (received, true),
                None => return (received, false),
            }
        }
    })
}

fn message() -> impl Strategy<Value = Expected> {
    let length = prop_oneof![
        4 => 0_usize..300,
        2 => 16_000_usize..17_000,
        1 => MAX - 5..MAX + 5,
        1 => MAX..4 * MAX,
    ];
    let frames = prop::collection::vec(prop_oneof![0_usize..5, 0_usize..50_000], 0..6);
    let ping = prop::option::of(prop::collection::vec(any::<u8>(), 0..126));
    let kind = prop_oneof![Just(Data::Text), Just(Data::Binary)];
    (kind, length, any::<u8>(), frames, ping, any::<[u8; 4]>()).prop_map(
        |(kind, length, seed, frames, ping, key)| {
            let payload = match kind {
                // Characters of one to four bytes, so that some of them are split.
                Data::Text => "aé€😀b"
                    .chars()
                    .cycle()
                    .skip(usize::from(seed))
                    .take(length / 2)
                    .collect::<String>()
                    .into_bytes(),
                _ => vec![seed; length],
            };
            Expected {
                kind,
                payload,
                frames,
                ping,
                key,
            }
        },
    )
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    let size = prop_oneof![1_usize..20, 1_usize..70_000];
    prop::collection::vec(size, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn messages_are_received_however_their_bytes_are_split(
        messages in prop::collection::vec(message(), 0..8),
        sizes in sizes(),
    ) {
        let stream = messages.iter().flat_map(Expected::encode).collect();
        // An over-long message ends the connection.
        let over = messages.iter().position(|message| message.payload.len() > MAX);
        let whole = &messages[..over.unwrap_or(messages.len())];
        let expected: Vec<Received> = whole.iter().map(|one| (one.kind, one.payload.clone())).collect();
        let (received, broken) = receive(stream, sizes);
        let right = received == expected && broken == over.is_some();
        prop_assert!(right, "{} of {}", received.len(), expected.len());
    }

    /// An invalid stream gives the same result, too.
    #[test]
    fn a_damaged_stream_gives_the_same_result_however_it_is_split(
        messages in prop::collection::vec(message(), 1..4),
        place: prop::sample::Index,
        byte: u8,
        sizes in sizes(),
    ) {
        let mut stream: Vec<u8> = messages.iter().flat_map(Expected::encode).collect();
        let place = place.index(stream.len());
        stream[place] = byte;
        let whole = receive(stream.clone(), vec![usize::MAX]);
        let split = receive(stream, sizes);
        prop_assert!(whole == split, "{} and {}", whole.0.len(), split.0.len());
    }
}
