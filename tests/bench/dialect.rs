//! The translator, without the scan before it.

use std::hint::black_box;

use acp_relay::dialect::{Forward, Translator};
use acp_relay::jsonrpc::Side;
use criterion::{Criterion, Throughput};

use super::samples::{self, Sample};

pub(super) fn unmatched(c: &mut Criterion) {
    let mut group = c.benchmark_group("unmatched");
    for dialect in ["loose-v1", "elephant", "goref", "copilot-overseer"] {
        let mut agent = samples::agent(dialect);
        let sample = samples::chunk(240);
        assert_eq!(
            agent.read(&sample.frame, &sample.at).forward,
            Forward::Unchanged
        );
        group.bench_function(format!("{dialect}, read"), |b| {
            b.iter(|| agent.read(black_box(&sample.frame), &sample.at));
        });
    }
    let mut client = Translator::new(
        Side::Client,
        samples::library(0).program("loose-v1").expect("built in"),
    );
    let sample = samples::chunk(240);
    group.bench_function("loose-v1, write", |b| {
        b.iter(|| client.write(black_box(&sample.frame), &sample.at));
    });
    let mut agent = samples::agent("loose-v1");
    let sample = samples::wrapped();
    assert_eq!(
        agent.read(&sample.frame, &sample.at).forward,
        Forward::Unchanged
    );
    group.bench_function("loose-v1, guards checked", |b| {
        b.iter(|| agent.read(black_box(&sample.frame), &sample.at));
    });
    group.finish();
}

pub(super) fn rewritten(c: &mut Criterion) {
    let mut group = c.benchmark_group("rewritten");
    for (dialect, sample) in [
        ("elephant", samples::elephant(0)),
        ("goref", samples::goref()),
        ("loose-v1", samples::bare()),
    ] {
        let mut agent = samples::agent(dialect);
        assert_ne!(
            agent.read(&sample.frame, &sample.at).forward,
            Forward::Unchanged
        );
        group.bench_function(dialect, |b| {
            b.iter(|| agent.read(black_box(&sample.frame), &sample.at));
        });
    }
    group.finish();
}

/// Compare with `scan/1 MiB`.
pub(super) fn large(c: &mut Criterion) {
    let mut group = c.benchmark_group("1 MiB, one member rewritten");
    let sample = samples::elephant(1 << 20);
    group.throughput(Throughput::Bytes(sample.frame.len() as u64));
    for dialect in ["elephant", "goref"] {
        let mut agent = samples::agent(dialect);
        let Sample { frame, at } = &sample;
        group.bench_function(dialect, |b| b.iter(|| agent.read(black_box(frame), at)));
    }
    group.finish();
}

/// The cost of a message must not depend on the number of tables.
pub(super) fn tables(c: &mut Criterion) {
    let mut group = c.benchmark_group("tables");
    for count in [1, 100] {
        let library = samples::library(count);
        let program = library.program("elephant").expect("it is built in");
        let mut agent = Translator::new(Side::Agent, program);
        let sample = samples::chunk(240);
        group.bench_function(format!("unmatched, {}", library.tables().len()), |b| {
            b.iter(|| agent.read(black_box(&sample.frame), &sample.at));
        });
        let sample = samples::elephant(0);
        group.bench_function(format!("rewritten, {}", library.tables().len()), |b| {
            b.iter(|| agent.read(black_box(&sample.frame), &sample.at));
        });
    }
    group.finish();
}
