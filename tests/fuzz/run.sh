#!/usr/bin/env bash
# Runs every fuzz target for a while, as many at a time as there are processors. What crashes one is
# left in tests/fuzz/artifacts, and told.
#
#   tests/fuzz/run.sh            a minute each
#   tests/fuzz/run.sh 3600 scan  an hour of one
#
# No sanitizer: the crate has no unsafe code, and so any toolchain will do.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:-60}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for file in tests/fuzz/fuzz_targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi

command -v cargo-fuzz >/dev/null || cargo install --locked --quiet cargo-fuzz@0.13.2
cargo fuzz build --fuzz-dir tests/fuzz --sanitizer none

# Where a target's inputs begin, besides what earlier runs have found.
seeds() {
    case $1 in
        scan) echo tests/vectors/json ;;
        recording) echo tests/vectors/recordings ;;
        table) echo mappings ;;
        config) echo tests/vectors/config ;;
        http) echo tests/vectors/json ;;
    esac
}

run() {
    local target=$1 log
    mkdir -p "tests/fuzz/corpus/$target"
    # A message may be long and a hang is a fault; memory is held against a bound as well.
    if log=$(cargo fuzz run --fuzz-dir tests/fuzz --sanitizer none "$target" \
        "tests/fuzz/corpus/$target" $(seeds "$target") -- -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 2>&1); then
        printf '%s: %s runs, no crash\n' "$target" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' <<<"$log")"
    else
        printf '%s: FAILED\n%s\n' "$target" "$(tail -40 <<<"$log")"
        return 1
    fi
}
export -f run seeds
export seconds
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c 'run {}'
