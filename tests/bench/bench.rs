//! What one message costs, by room: `cargo bench`, or `cargo bench NAME` for some.
//!
//! No thresholds here: figures depend on the machine. What must never be (an allocation for a
//! message that nothing touches) is asserted in `tests/it/allocation.rs`.

mod core;
mod dialect;
mod nowhere;
mod recording;
mod samples;
mod wire;

use criterion::{criterion_group, criterion_main};

criterion_group!(
    all,
    wire::scan,
    wire::framing,
    dialect::unmatched,
    dialect::rewritten,
    dialect::large,
    dialect::tables,
    core::counting,
    core::passing,
    recording::recorder,
    recording::redaction
);
criterion_main!(all);
