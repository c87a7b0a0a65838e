#!/usr/bin/env bash
# Runs every fuzz target for a while, two at a time for each processor. What crashes one is left in
# tests/fuzz/artifacts, and told.
#
#   tests/fuzz/run.sh            a minute each
#   tests/fuzz/run.sh 3600 scan  an hour of one
#
# No sanitizer: the crate has no unsafe code, and so any toolchain will do. `cargo fuzz` builds it as
# well, but is a program more to compile before the first run, and compiles all else anew.
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

# Where a target's inputs begin, besides what earlier runs have found.
seeds() {
    case $1 in
        scan) echo tests/vectors/json ;;
        recording) echo tests/vectors/recordings ;;
        capture) echo tests/vectors/inspect ;;
        table) echo mappings ;;
        config) echo tests/vectors/config ;;
        http) echo tests/vectors/json ;;
    esac
}

run() {
    local target=$1 log
    mkdir -p "tests/fuzz/corpus/$target" "tests/fuzz/artifacts/$target"
    # A message may be long and a hang is a fault, if it is none of a machine with other work; memory
    # is held against a bound as well.
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
