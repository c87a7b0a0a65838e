//! What a hop adds, end to end, beside hops that only copy: `cargo bench --bench hop`.
//!
//! A client of ours speaks to an agent of ours, directly and through each hop that is there: this
//! relay, `socat` (Debian) and `websocat` (`cargo install websocat`), and a copier of ours that
//! knows nothing but lines and frames and is the limit. Rows are taken in turn, round after round,
//! because a machine's mood changes; what counts are ratios. `--rounds N`, and names of rows to
//! take only those. Not here: what a message costs inside (see `bench`), and bounds.

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
