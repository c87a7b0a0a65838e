//! Any lines with valid checksums as the events of a recording: the viewer indexes, lints and
//! compares them, and has its figures, turns and rows.

#![no_main]

#[path = "../../it/support/viewed.rs"]
mod viewed;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime starts"));

fuzz_target!(|text: &str| {
    let lines: Vec<String> = text.lines().map(viewed::sealed).collect();
    RUNTIME.block_on(viewed::view(viewed::folder(&lines).path()));
});
