//! What one message costs, by module: `cargo bench --bench bench`, or with a name for some.
//!
//! There are no bounds: times depend on the machine. That a message which no rule changes takes no
//! allocation is asserted in `tests/it/allocation.rs`.

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
