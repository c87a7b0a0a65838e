//! All that the `Conversation` does with a message: scan, detection, both translations, the outbox.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use acp_relay::conversation::{Conversation, DialectChoice, DialectOptions, LinkTraits, Outbox};
use acp_relay::jsonrpc::{Frame, Limits, Side};
use acp_relay::observe::metrics::{Metrics, Parties, Transport};
use acp_relay::observe::{Event, Observer as _};
use criterion::Criterion;

use super::samples;

const TRAITS: LinkTraits = LinkTraits {
    client_on_stdio: false,
    client_half_close: true,
    agent_half_close: true,
    agent_is_child: false,
    agent_is_replayed: false,
    announce_exit: false,
    agent_restarts: false,
    agent_is_relay: false,
};

/// A conversation whose `initialize` is answered.
fn conversation(choice: &DialectChoice, tables: usize) -> (Conversation, Outbox) {
    let library = samples::library(tables);
    let dialects = DialectOptions::new(&library, choice, choice).expect("it is built in");
    let limits = Limits::default();
    let out = Outbox::new(&limits);
    let mut core = Conversation::new(limits.into(), TRAITS, dialects, Instant::now());
    let mut out = out;
    let ask = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#;
    let now = Instant::now();
    core.handle_frame(Side::Client, Frame::from(ask), now, &mut out);
    core.handle_frame(Side::Agent, Frame::from(answer), now, &mut out);
    drain(&mut out);
    (core, out)
}

fn drain(out: &mut Outbox) {
    for side in [Side::Client, Side::Agent] {
        while let Some(frame) = out.pop(side) {
            black_box(frame);
        }
    }
    while out.pop_note().is_some() {}
}

/// What metrics add: without an observer, with 64 messages in each turn of the loop, and with one
/// message in each.
pub(super) fn counting(c: &mut Criterion) {
    let mut group = c.benchmark_group("metrics");
    let now = Instant::now();
    let sample = samples::chunk(240);
    for (name, turn) in [("off", 0), ("on", 64), ("on, one a turn", 1)] {
        let (mut core, mut out) = conversation(&DialectChoice::Canonical, 0);
        let metrics = Arc::new(Metrics::new("bench", now));
        let mut observer = metrics.begin(Parties {
            client: "bench".to_owned(),
            transports: [Transport::Tcp; 2],
            agent: metrics.agent("bench"),
            since: now,
            room: 1 << 20,
        });
        let counted = turn > 0;
        if counted {
            out.set_needs(observer.needs());
        }
        let mut messages = 0;
        group.bench_function(format!("{name}, update of 240 B"), |b| {
            b.iter(|| {
                let frame = black_box(sample.frame.clone());
                if counted {
                    observer.on_event(&Event::Received(Side::Agent, &frame));
                }
                core.handle_frame(Side::Agent, frame, now, &mut out);
                while let Some(summary) = out.pop_summary() {
                    observer.on_event(&Event::Forwarded(&summary));
                }
                while let Some(frame) = out.pop(Side::Client) {
                    if counted {
                        observer.on_event(&Event::Sent(Side::Client, &frame));
                    }
                    black_box(frame);
                }
                messages += 1;
                if counted && messages == turn {
                    observer.flush();
                    messages = 0;
                }
            });
        });
    }
    group.finish();
}

pub(super) fn passing(c: &mut Criterion) {
    let mut group = c.benchmark_group("core");
    let now = Instant::now();
    for (name, choice, tables) in [
        ("canonical", DialectChoice::Canonical, 0),
        ("auto", DialectChoice::Auto, 0),
        ("auto, 100 tables", DialectChoice::Auto, 100),
    ] {
        let (mut core, mut out) = conversation(&choice, tables);
        for (size, sample) in [
            ("100 B", samples::tiny()),
            ("240 B", samples::chunk(240)),
            ("1 KiB", samples::chunk(1 << 10)),
        ] {
            group.bench_function(format!("{name}, update of {size}"), |b| {
                b.iter(|| {
                    core.handle_frame(Side::Agent, black_box(sample.frame.clone()), now, &mut out);
                    drain(&mut out);
                });
            });
        }
        let ask = r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}"#;
        let answer = r#"{"jsonrpc":"2.0","id":7,"result":{"stopReason":"end_turn"}}"#;
        group.bench_function(format!("{name}, prompt and answer"), |b| {
            b.iter(|| {
                core.handle_frame(Side::Client, Frame::from(ask), now, &mut out);
                core.handle_frame(Side::Agent, Frame::from(answer), now, &mut out);
                drain(&mut out);
            });
        });
        let ask = r#"{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"a","name":"Allow","kind":"allow_once"},{"optionId":"r","name":"Reject","kind":"reject_once"}]}}"#;
        let answer = r#"{"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"selected","optionId":"a"}}}"#;
        group.bench_function(format!("{name}, permission and answer"), |b| {
            b.iter(|| {
                core.handle_frame(Side::Agent, Frame::from(ask), now, &mut out);
                core.handle_frame(Side::Client, Frame::from(answer), now, &mut out);
                drain(&mut out);
            });
        });
    }
    group.finish();
}
