//! What a hop adds, end to end, beside hops that only copy: `cargo bench --bench hop`.
//!
//! A client exchanges messages with an agent, both in this program, directly and through each hop
//! that is installed: this relay, `socat` (Debian), `websocat` (`cargo install websocat`), and a
//! copier that only knows lines and frames and is the lower limit. Rows are measured in turn, in
//! rounds, because the load of a machine changes; only ratios count. `--rounds N`, and names of
//! rows to measure only those. Not here: what a message costs inside (see `bench`), and bounds.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark that prints its table, and that cannot go on has failed"
)]

mod agent;
mod copier;
mod line;
mod measure;
mod rows;

use std::env::args;

fn main() {
    let words: Vec<String> = args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["agent"] => agent::serve(),
        ["copier", "tcp", at, ref command @ ..] => copier::serve(at, false, command),
        ["copier", "ws", at, ref command @ ..] => copier::serve(at, true, command),
        ["--rounds", rounds, ref only @ ..] => rows::run(rounds.parse().unwrap(), only),
        ref only => rows::run(5, only),
    }
}
