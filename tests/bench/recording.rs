//! What a recording costs: the conversation, which only hands over what it sees, and the thread
//! that makes lines of it and puts them away. No disk is measured: the lines go nowhere.

use std::future::poll_fn;
use std::hint::black_box;
use std::io::{self, Write};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use acp_relay::recording::Peer;
use acp_relay::recording::redact::{Mode, Redactor};
use acp_relay::tap::recorder::{Desk, Place, Plan, Policy, Recorder};
use acp_relay::tap::{Sight, Tap};
use acp_relay::wire::{Frame, Side};
use criterion::{Criterion, Throughput};

use super::samples;

/// Frames in a row before the recorder is asked whether it is behind, as many as the relay hears
/// in one turn.
const TURN: u64 = 100;

/// Nowhere.
struct Nowhere;

impl Place for Nowhere {
    fn begin(&mut self, _number: u64) -> io::Result<Box<dyn Write + Send>> {
        Ok(Box::new(io::sink()))
    }

    fn name(&self) -> String {
        "nowhere".to_owned()
    }
}

/// Frames are heard and passed on as they are.
fn pass(recorder: &mut Recorder, frame: &Frame, count: u64) {
    for _ in 0..count {
        recorder.see(&Sight::Heard(Side::Agent, black_box(frame)));
        recorder.see(&Sight::Settled([1, 0]));
    }
    for _ in 0..count {
        recorder.see(&Sight::Said(Side::Client, black_box(frame)));
    }
}

/// Waits while the recorder is behind, without a runtime.
fn wait(recorder: &mut Recorder) {
    let mut room = pin!(poll_fn(|cx| recorder.poll_room(cx)));
    let mut cx = Context::from_waker(Waker::noop());
    while room.as_mut().poll(&mut cx).is_pending() {
        std::thread::yield_now();
    }
}

/// Records so many frames; the time the conversation took, and the time until all was put away.
fn record(desk: &Arc<Desk>, mode: Mode, frame: &Frame, count: u64) -> (Duration, Duration) {
    let peer = || Peer {
        name: "bench".to_owned(),
        dialect: "canonical".to_owned(),
    };
    let (tell, over) = sync_channel(1);
    let plan = Plan {
        place: Box::new(Nowhere),
        id: "ab".repeat(16),
        client: peer(),
        agent: peer(),
        policy: Policy::Lossless,
        on_error: false,
        redactor: Arc::new(Redactor::new(mode, Vec::new(), [7; 32])),
        on_failure: Box::new(|| {}),
        on_end: Box::new(move |_| tell.send(()).expect("it is awaited")),
    };
    let (mut recorder, _) = desk.open(plan).expect("nowhere has room");
    let mut seeing = Duration::ZERO;
    let began = Instant::now();
    let mut left = count;
    while left > 0 {
        let now = left.min(TURN);
        left -= now;
        let start = Instant::now();
        pass(&mut recorder, frame, now);
        seeing += start.elapsed();
        wait(&mut recorder);
    }
    drop(recorder);
    over.recv().expect("a recording ends");
    (seeing, began.elapsed())
}

pub(super) fn recorder(c: &mut Criterion) {
    let desk = Desk::start().expect("there can be a thread");
    let mut group = c.benchmark_group("recorder");
    for (size, sample) in [
        ("100 B", samples::chunk(240)),
        ("1 KiB", samples::chunk(1 << 10)),
        ("64 KiB", samples::chunk(64 << 10)),
    ] {
        let frame = &sample.frame;
        group.throughput(Throughput::Bytes(frame.len() as u64));
        group.bench_function(format!("{size}, seen"), |b| {
            b.iter_custom(|count| record(&desk, Mode::Default, frame, count).0);
        });
        group.bench_function(format!("{size}, put away"), |b| {
            b.iter_custom(|count| record(&desk, Mode::Default, frame, count).1);
        });
    }
    group.finish();
}
