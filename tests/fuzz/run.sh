#!/usr/bin/env bash
# Runs every fuzz target for a while, two at a time for each processor. An input that crashes one is
# reported and left in tests/fuzz/artifacts.
#
#   tests/fuzz/run.sh            a minute each
#   tests/fuzz/run.sh 3600 scan  an hour of one
#
# No sanitizer: the crate has no unsafe code, so any toolchain works. `cargo fuzz` works too, but
# must be installed first, and compiles all dependencies again.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:-60}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for file in tests/fuzz/fuzz_targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi

command -v c++ >/dev/null || apt-get install -y -qq g++
begun=$SECONDS
RUSTC_WRAPPER=$PWD/tests/fuzz/instrument.sh cargo build --quiet --locked \
    --manifest-path tests/fuzz/Cargo.toml --target-dir target
echo "fuzz: built in $((SECONDS - begun)) s"

# The first inputs of a target, besides those found by earlier runs.
seeds() {
    case $1 in
        scan) echo tests/vectors/json ;;
        recording) echo tests/vectors/recordings ;;
        capture) echo tests/vectors/inspect ;;
        table) echo mappings ;;
        config) echo tests/vectors/config ;;
        http) echo tests/vectors/json ;;
        redact) echo tests/vectors/secrets ;;
        versions | events) echo "tests/fuzz/seeds/$1" ;;
    esac
}

run() {
    local target=$1 log
    mkdir -p "tests/fuzz/corpus/$target" "tests/fuzz/artifacts/$target"
    # Inputs may be long. The timeout finds hangs, and is long enough for a busy machine; memory has
    # a limit as well.
    # shellcheck disable=SC2046
    if log=$("target/debug/$target" "tests/fuzz/corpus/$target" $(seeds "$target") \
        -artifact_prefix="tests/fuzz/artifacts/$target/" -max_total_time="$seconds" -max_len=65536 \
        -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 2>&1); then
        printf '%-10s %10s runs, coverage %5s, no crash\n' "$target" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' <<<"$log")" \
            "$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' <<<"$log" | tail -1)"
    else
        printf '%s: FAILED\n%s\n' "$target" "$(tail -40 <<<"$log")"
        return 1
    fi
}
export -f run seeds
export seconds
printf '%s\n' "${targets[@]}" | xargs -P $((2 * $(nproc))) -I{} bash -c 'run {}'
