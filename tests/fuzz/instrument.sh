#!/bin/sh
# instrument.sh RUSTC ARGUMENTS: runs the compiler, for our own code with the coverage that
# libFuzzer needs. Dependencies are compiled as always, so they need not be compiled a second time.
case "${CARGO_PKG_NAME:-} $* " in
*" --crate-name build_script_build "*) exec "$@" ;;
acp-relay*)
    exec "$@" --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
        -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
    ;;
*) exec "$@" ;;
esac
