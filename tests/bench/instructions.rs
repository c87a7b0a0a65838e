//! The relay's loop over byte streams in memory, so often and no more: for counting instructions.
//!
//!     instructions SPEECH MESSAGE ROUNDS
//!
//! SPEECH is `canonical` or `auto`, MESSAGE one of `100`, `1024` (updates of so many bytes, 300 to a
//! round) and `asked` (a prompt and its answer, 100 to a round). `instructions.py` runs it under
//! callgrind twice and divides the difference by the messages, so that what it takes to begin does
//! not count. Not here: how long anything takes (see `bench`, `hop`).

use std::env::args;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;

use acp_relay::core::{Choice, Speech};
use acp_relay::dialect::Library;
use acp_relay::relay::{self, Stop};
use acp_relay::tap::Taps;
use acp_relay::transport::{Link, Peer, PeerKind, Setup, stream};
use acp_relay::wire::Side;
use futures_util::future::{Either, select};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

/// Room in a stream; a round fits.
const ROOM: usize = 512 << 10;

fn link() -> (Link, DuplexStream) {
    let (near, far) = duplex(ROOM);
    let (reader, writer) = tokio::io::split(near);
    let (rx, tx) = stream::halves(reader, writer, 1 << 24, &Setup::default());
    let link = Link {
        peer: Peer {
            name: "duplex".to_owned(),
            half_close: true,
            kind: PeerKind::Remote,
            principal: None,
            wish: None,
        },
        rx: Box::new(rx),
        tx: Box::new(tx),
        hold: Box::new(()),
    };
    (link, far)
}

fn update(size: usize) -> String {
    let line = |text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        )
    };
    let short = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"text":"abcdefg"}}}"#;
    if size <= 128 {
        return format!("{short}\n");
    }
    line(&"word ".repeat((size - line("").len()) / 5)) + "\n"
}

/// What is said in one round.
fn rounds(message: &str) -> Vec<(Side, String)> {
    let asks = |n| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{n},\"method\":\"session/prompt\",\"params\":{{\"sessionId\":\"s\",\"prompt\":[{{\"type\":\"text\",\"text\":\"hi\"}}]}}}}\n"
        )
    };
    let answers = |n| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{n},\"result\":{{\"stopReason\":\"end_turn\"}}}}\n")
    };
    match message.parse() {
        Ok(size) => vec![(Side::Agent, update(size).repeat(300))],
        Err(_) => vec![
            (Side::Client, (0..100).map(asks).collect()),
            (Side::Agent, (0..100).map(answers).collect()),
        ],
    }
}

fn main() {
    let words: Vec<String> = args().skip(1).filter(|word| word != "--bench").collect();
    let [speech, message, count] = &words[..] else {
        // `cargo bench` runs all there is; this is for its script.
        return;
    };
    let library = Arc::new(Library::builtin().expect("the built-in tables have no faults"));
    let speech = match speech.as_str() {
        "auto" => Speech::new(&library, &Choice::Auto, &Choice::Auto).expect("it is built in"),
        _ => Speech::canonical(),
    };
    let rounds = rounds(message);
    let count: usize = count.parse().expect("a number of rounds");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let ((client, mut far_client), (agent, mut far_agent)) = (link(), link());
    let stop = Stop::default();
    let taps = Taps::default();
    let run = relay::run(client, agent, Arc::default(), speech, None, taps, &stop);
    let run: Pin<Box<dyn Future<Output = _>>> = Box::pin(run);
    let play = pin!(async move {
        let mut buffer = vec![0; ROOM];
        for _ in 0..count {
            for (side, text) in &rounds {
                let (from, to) = match side {
                    Side::Client => (&mut far_client, &mut far_agent),
                    Side::Agent => (&mut far_agent, &mut far_client),
                };
                from.write_all(text.as_bytes())
                    .await
                    .expect("there is room");
                let heard = &mut buffer[..text.len()];
                to.read_exact(heard).await.expect("it is said");
                assert!(*heard == *text.as_bytes(), "the bytes are others");
            }
        }
    });
    match runtime.block_on(select(play, run)) {
        Either::Left(_) => {}
        Either::Right(_) => panic!("the relay has ended"),
    }
}
