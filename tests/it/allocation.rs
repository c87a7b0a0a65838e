//! A message that needs no change costs no allocation.
//!
//! The whole loop runs over byte streams; after rounds to warm up, the allocations of further
//! rounds are counted on this thread. The peers here allocate nothing, so every allocation counted
//! is the relay's.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::pin::{Pin, pin};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use acp_relay::conversation::{DialectChoice, DialectOptions};
use acp_relay::dialect::Library;
use acp_relay::jsonrpc::Side;
use acp_relay::observe::Observers;
use acp_relay::observe::metrics::{Metrics, Parties, Transport};
use acp_relay::proxy::{self, End, StopSignals};
use acp_relay::transport::{Link, Peer, PeerKind, stream};
use allocation_counter::measure;
use futures_util::future::{Either, select};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use crate::support::link::setup;

/// The far ends of both links.
struct Peers {
    client: DuplexStream,
    agent: DuplexStream,
    buffer: Vec<u8>,
}

/// One round: one batch that one side sends and the other side receives.
struct Round {
    from: Side,
    text: Vec<u8>,
}

fn link(half_close: bool) -> (Link, DuplexStream) {
    let (near, far) = duplex(512 << 10);
    let (reader, writer) = tokio::io::split(near);
    let (rx, tx) = stream::halves(reader, writer, 1 << 24, &setup());
    let link = Link {
        peer: Peer {
            name: "duplex".to_owned(),
            half_close,
            kind: PeerKind::Remote,
            principal: None,
            wanted_agent: None,
            longest: usize::MAX,
            is_direct: false,
        },
        rx: Box::new(rx),
        tx: Box::new(tx),
        guard: Box::new(()),
        login: None,
        sessions: None,
    };
    (link, far)
}

impl Peers {
    async fn play(&mut self, rounds: &[Round]) {
        for round in rounds {
            let (from, to) = match round.from {
                Side::Client => (&mut self.client, &mut self.agent),
                Side::Agent => (&mut self.agent, &mut self.client),
            };
            from.write_all(&round.text).await.unwrap();
            let received = &mut self.buffer[..round.text.len()];
            to.read_exact(received).await.unwrap();
            assert!(received == round.text, "the bytes differ");
        }
    }
}

/// Makes the line with a number.
type Lines<'l> = &'l dyn Fn(usize) -> String;

/// Both sides are canonical.
fn canonical() -> DialectOptions {
    DialectOptions::canonical()
}

/// The dialect of each side is detected from its messages.
fn auto() -> DialectOptions {
    static LIBRARY: LazyLock<Arc<Library>> = LazyLock::new(|| Arc::new(Library::builtin()));
    DialectOptions::new(&LIBRARY, &DialectChoice::Auto, &DialectChoice::Auto).unwrap()
}

/// With the metrics of a serving relay.
fn counted() -> Observers {
    let metrics = Arc::new(Metrics::new("test", Instant::now()));
    Observers::default().with(metrics.begin(Parties {
        client: "test".to_owned(),
        transports: [Transport::Tcp, Transport::Process],
        agent: metrics.agent("test"),
        since: Instant::now(),
        room: 1 << 20,
    }))
}

/// Allocations of the relay while `rounds` are played `times` over, after a warm-up, with and
/// without metrics.
fn allocations(dialects: fn() -> DialectOptions, rounds: &[Round], times: usize) -> u64 {
    let observers = [Observers::default(), counted()];
    observers
        .into_iter()
        .map(|observers| allocations_with(observers, dialects, rounds, times))
        .sum()
}

fn allocations_with(
    observers: Observers,
    dialects: fn() -> DialectOptions,
    rounds: &[Round],
    times: usize,
) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (client, far_client) = link(true);
    let (agent, far_agent) = link(true);
    let mut peers = Peers {
        client: far_client,
        agent: far_agent,
        buffer: vec![0; 512 << 10],
    };
    let stop = StopSignals::default();
    let limits = Arc::default();
    let mut run: Pin<Box<dyn Future<Output = End> + '_>> = Box::pin(proxy::run(
        client,
        agent,
        limits,
        dialects(),
        None,
        observers,
        &stop,
    ));
    let mut play = |times: usize| {
        runtime.block_on(async {
            for _ in 0..times {
                let round = pin!(peers.play(rounds));
                match select(round, &mut run).await {
                    Either::Left(_) => {}
                    Either::Right((end, _)) => panic!("the relay has ended: {end:?}"),
                }
            }
        });
    };
    play(300);
    // Entering the runtime allocates, too.
    let entering = measure(|| play(0)).count_total;
    measure(|| play(times)).count_total - entering
}

fn lines(count: usize, line: Lines<'_>) -> Vec<u8> {
    (0..count).map(line).collect::<String>().into_bytes()
}

fn update(pad: usize) -> impl Fn(usize) -> String {
    let pad = "x".repeat(pad);
    move |n| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":[{n},\"{pad}\"]}}\n"
        )
    }
}

/// An update as agents send them; some rules are for other variants of it.
fn chunk(pad: usize) -> impl Fn(usize) -> String {
    let pad = "x".repeat(pad);
    move |n| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"update\":{{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"{n} {pad}\"}}}}}}}}\n"
        )
    }
}

fn ask(n: usize) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{n},\"method\":\"session/prompt\"}}\n")
}

/// A prompt as clients send them; some rules are for blocks that lack something.
fn prompt(n: usize) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{n},\"method\":\"session/prompt\",\"params\":{{\"sessionId\":\"s\",\"prompt\":[{{\"type\":\"text\",\"text\":\"Go on \\u00e4\"}},{{\"type\":\"resource_link\",\"uri\":\"file:///a\",\"name\":\"a\"}}]}}}}\n"
    )
}

fn answer(n: usize) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{n},\"result\":{{\"stopReason\":\"end_turn\"}}}}\n")
}

/// A message with a quoted UUID as its id.
fn quoted(message: fn(usize) -> String) -> impl Fn(usize) -> String {
    move |n| {
        let uuid = format!("\"id\":\"5f0c7f3e-2f5b-4e0e-9d6b-{n:012}\"");
        message(n).replace(&format!("\"id\":{n}"), &uuid)
    }
}

#[test]
fn the_counter_counts_allocations() {
    let counted = measure(|| drop(std::hint::black_box(vec![0_u8; 100])));
    assert_eq!(counted.count_total, 1);
}

#[test]
fn notifications_cost_no_allocation() {
    for from in [Side::Client, Side::Agent] {
        for (count, pad) in [(1, 0), (1, 3000), (10, 200), (300, 100), (2000, 10)] {
            let text = lines(count, &update(pad));
            let counted = allocations(canonical, &[Round { from, text }], 50);
            assert_eq!(
                counted, 0,
                "from the {from}: {count} messages of {pad} bytes and more, 50 times"
            );
        }
    }
}

#[test]
fn updates_without_a_matching_rule_cost_no_allocation() {
    for from in [Side::Client, Side::Agent] {
        for (count, pad) in [(1, 100), (1, 3000), (300, 100)] {
            let text = lines(count, &chunk(pad));
            let counted = allocations(auto, &[Round { from, text }], 50);
            assert_eq!(counted, 0, "from the {from}: {count} updates, 50 times");
        }
    }
}

#[test]
fn requests_and_their_answers_cost_no_allocation() {
    for from in [Side::Client, Side::Agent] {
        let check = |dialects: fn() -> DialectOptions,
                     name: &str,
                     count,
                     ask: Lines<'_>,
                     answer: Lines<'_>| {
            let there = lines(count, ask);
            let back = lines(count, answer);
            let rounds =
                [(from, there), (from.other(), back)].map(|(from, text)| Round { from, text });
            let counted = allocations(dialects, &rounds, 50);
            assert_eq!(
                counted,
                0,
                "{count} requests of the {from} with {name}, 50 times: {}",
                ask(0)
            );
        };
        for count in [1, 8, 500] {
            check(canonical, "canonical", count, &ask, &answer);
            check(auto, "auto", count, &ask, &answer);
        }
        // On `auto` the blocks of a prompt are read tolerantly: a rule opens the message.
        for count in [1, 8] {
            check(canonical, "canonical", count, &prompt, &answer);
        }
        let (ask, answer) = (quoted(ask), quoted(answer));
        check(canonical, "canonical", 1, &ask, &answer);
        check(auto, "auto", 1, &ask, &answer);
    }
}
