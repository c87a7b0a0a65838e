//! Memory of the metrics: `cargo bench --bench memory`. A step of `.ci/long`.
//!
//! Ten million messages pass the observer of a conversation, without a scrape.
//! Fails when the resident memory grows by 8 MiB.

use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_relay::conversation::{Conversation, DialectOptions, LinkTraits, Outbox};
use acp_relay::jsonrpc::{Frame, Limits, Side};
use acp_relay::observe::metrics::{ConversationMetrics, Metrics, Parties, Transport};
use acp_relay::observe::{Event, Observer as _};

const MESSAGES: u64 = 10_000_000;
/// Messages that are read before the conversation's loop begins its next turn.
const TURN: u64 = 16;
const MOST: u64 = 8 << 20;

/// Requests of all kinds that have a histogram, their answers, and updates.
const ROUND: [(Side, &str); 10] = [
    (
        Side::Client,
        r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}"#,
    ),
    (Side::Agent, UPDATE),
    (Side::Agent, UPDATE),
    (
        Side::Agent,
        r#"{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s"}}"#,
    ),
    (
        Side::Client,
        r#"{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"a"}}}"#,
    ),
    (Side::Agent, UPDATE),
    (
        Side::Agent,
        r#"{"jsonrpc":"2.0","id":2,"method":"fs/read_text_file","params":{"sessionId":"s"}}"#,
    ),
    (
        Side::Client,
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":""}}"#,
    ),
    (Side::Agent, UPDATE),
    (
        Side::Agent,
        r#"{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}"#,
    ),
];

const UPDATE: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}}}"#;

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.expect("it is a number") << 10
}

fn play(
    core: &mut Conversation,
    out: &mut Outbox,
    observer: &mut ConversationMetrics,
    messages: u64,
) {
    let (start, mut read) = (Instant::now(), 0);
    for (side, text) in ROUND.iter().cycle() {
        let now = start + Duration::from_micros(read);
        let frame = Frame::from(*text);
        observer.on_event(&Event::Received(*side, &frame));
        core.handle_frame(*side, frame, now, out);
        while let Some(summary) = out.pop_summary() {
            observer.on_event(&Event::Forwarded(&summary));
        }
        while let Some(note) = out.pop_note() {
            observer.on_event(&Event::Note(&note));
        }
        for to in [Side::Client, Side::Agent] {
            while let Some(frame) = out.pop(to) {
                observer.on_event(&Event::Sent(to, &frame));
            }
        }
        read += 1;
        if read % TURN == 0 {
            observer.on_event(&Event::Processed {
                from: *side,
                messages: TURN,
                took: Duration::from_micros(TURN),
            });
            observer.flush();
        }
        if read == messages {
            return;
        }
    }
}

#[expect(clippy::print_stdout, reason = "the result is printed")]
fn main() {
    let metrics = Arc::new(Metrics::new("bench", Instant::now()));
    let mut observer = metrics.begin(Parties {
        client: "bench".to_owned(),
        transports: [Transport::Tcp; 2],
        agent: metrics.agent("bench"),
        since: Instant::now(),
        room: 1 << 20,
    });
    let limits = Arc::new(Limits::default());
    let mut out = Outbox::new(&limits);
    out.set_needs(observer.needs());
    let mut core = Conversation::new(
        limits,
        LinkTraits::default(),
        DialectOptions::canonical(),
        Instant::now(),
    );
    play(&mut core, &mut out, &mut observer, 1000);
    let before = resident();
    play(&mut core, &mut out, &mut observer, MESSAGES);
    let grown = resident().saturating_sub(before);
    let page = metrics.scrape(Instant::now());
    let turns = "acp_relay_turn_duration_seconds_count{agent=\"bench\",stop_reason=\"end_turn\"} ";
    let turns = page.lines().find_map(|line| line.strip_prefix(turns));
    let played = (MESSAGES + 1000) / ROUND.len() as u64;
    assert_eq!(turns, Some(&*played.to_string()), "turns");
    let kibibytes = grown >> 10;
    assert!(grown < MOST, "{MESSAGES} messages took {kibibytes} KiB");
    println!("{MESSAGES} messages: resident memory grew by {kibibytes} KiB");
}
