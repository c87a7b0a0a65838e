//! Scanning for the envelope, and framings.

use std::hint::black_box;

use acp_relay::jsonrpc::framing::{Decoded, Decoder, Framing};
use acp_relay::jsonrpc::{Limits, scan as find};
use bytes::BytesMut;
use criterion::{Criterion, Throughput};

use super::samples;

pub(super) fn scan(c: &mut Criterion) {
    let mut group = c.benchmark_group("scan");
    let limits = Limits::default();
    for (name, sample) in [
        ("100 B", samples::tiny()),
        ("240 B", samples::chunk(240)),
        ("1 KiB", samples::chunk(1 << 10)),
        ("64 KiB", samples::chunk(64 << 10)),
        ("1 MiB", samples::elephant(1 << 20)),
    ] {
        group.throughput(Throughput::Bytes(sample.frame.len() as u64));
        group.bench_function(name, |b| b.iter(|| find(black_box(&sample.frame), &limits)));
    }
    group.finish();
}

pub(super) fn framing(c: &mut Criterion) {
    let mut group = c.benchmark_group("framing");
    let limits = Limits::default();
    let frame = samples::tiny().frame;
    for (name, framing) in [
        ("lines", Framing::Ndjson),
        ("content-length", Framing::ContentLength),
    ] {
        let mut encoded = BytesMut::new();
        for _ in 0..100 {
            framing.encode(&frame, &mut encoded);
        }
        group.throughput(Throughput::Elements(100));
        group.bench_function(format!("{name}, encode 100"), |b| {
            let mut out = BytesMut::new();
            b.iter(|| {
                out.clear();
                for _ in 0..100 {
                    framing.encode(black_box(&frame), &mut out);
                }
            });
        });
        group.bench_function(format!("{name}, decode 100"), |b| {
            let mut decoder = Decoder::new(Some(framing), limits.frame_from_child, &limits);
            b.iter_batched_ref(
                || encoded.clone(),
                |buffer| {
                    let mut count = 0;
                    while let Ok(Some(Decoded::Frame(_))) = decoder.decode(buffer) {
                        count += 1;
                    }
                    assert_eq!(count, 100);
                },
                criterion::BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}
