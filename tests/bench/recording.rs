//! What a recording costs: the conversation, which only passes events to the recorder, and the
//! writer thread, which encodes and writes lines. No disk is measured: the lines are discarded.

use std::future::poll_fn;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use acp_relay::jsonrpc::{Frame, Side};
use acp_relay::observe::recorder::{Recorder, WriterThread};
use acp_relay::observe::{Event, Observer};
use acp_relay::recording::redact::{Mode, Redactor};
use criterion::{Criterion, Throughput};

use super::nowhere;
use super::samples::{self, Sample};

/// Frames in a row before the recorder is polled for readiness, as many as the relay receives in
/// one turn.
const TURN: usize = 100;

/// Records frames as received and forwarded unchanged.
fn forward(recorder: &mut Recorder, sample: &Sample, count: usize) {
    for waiting in 1..=count {
        recorder.on_event(&Event::Received(Side::Agent, black_box(&sample.frame)));
        recorder.on_event(&Event::Parsed(black_box(&sample.at)));
        recorder.on_event(&Event::Settled([waiting, 0]));
    }
    for _ in 0..count {
        recorder.on_event(&Event::Sent(Side::Client, black_box(&sample.frame)));
    }
    recorder.flush();
}

/// Waits while the recorder is behind, without a runtime.
fn wait(recorder: &mut Recorder) {
    let mut ready = pin!(poll_fn(|cx| recorder.poll_ready(cx)));
    let mut cx = Context::from_waker(Waker::noop());
    while ready.as_mut().poll(&mut cx).is_pending() {
        std::thread::yield_now();
    }
}

/// Records `count` frames; returns the conversation's time, and the time until all was written.
fn record(
    thread: &Arc<WriterThread>,
    mode: Mode,
    sample: &Sample,
    count: u64,
) -> (Duration, Duration) {
    let (mut recorder, end) = nowhere::recorder(thread, mode);
    let mut observing = Duration::ZERO;
    let began = Instant::now();
    let mut left = usize::try_from(count).expect("a benchmark is not that long");
    while left > 0 {
        let now = left.min(TURN);
        left -= now;
        let start = Instant::now();
        forward(&mut recorder, sample, now);
        observing += start.elapsed();
        wait(&mut recorder);
    }
    drop(recorder);
    end.recv().expect("a recording ends");
    (observing, began.elapsed())
}

/// The search for secrets, without and with one to find.
pub(super) fn redaction(c: &mut Criterion) {
    let redactor = Redactor::new(Mode::Default, Vec::new(), [7; 32]);
    let mut group = c.benchmark_group("redaction");
    let key = r#"{"params":{"text":"export OPENAI_API_KEY=sk-abcdefgh0123456789abcdefgh"}}"#;
    for (name, text) in [
        ("prose, 240 B", samples::chunk(240).frame),
        ("prose, 64 KiB", samples::chunk(64 << 10).frame),
        ("code, 1 KiB", samples::elephant(1 << 10).frame),
        ("code, 64 KiB", samples::elephant(64 << 10).frame),
        ("a key", Frame::from(key)),
    ] {
        let text = text.as_bytes();
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |b| b.iter(|| redactor.json(black_box(text), None)));
    }
    group.finish();
}

pub(super) fn recorder(c: &mut Criterion) {
    let thread = WriterThread::start().expect("a thread can be started");
    let mut group = c.benchmark_group("recorder");
    for (size, sample) in [
        ("100 B", samples::chunk(240)),
        ("1 KiB", samples::chunk(1 << 10)),
        ("64 KiB", samples::chunk(64 << 10)),
    ] {
        group.throughput(Throughput::Bytes(sample.frame.len() as u64));
        group.bench_function(format!("{size}, observed"), |b| {
            b.iter_custom(|count| record(&thread, Mode::Default, &sample, count).0);
        });
        group.bench_function(format!("{size}, written"), |b| {
            b.iter_custom(|count| record(&thread, Mode::Default, &sample, count).1);
        });
    }
    group.finish();
}
