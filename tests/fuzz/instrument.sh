#!/bin/sh
# instrument.sh RUSTC ARGUMENTS: compiles as cargo asks, and our own code so that libFuzzer sees what
# of it was reached. What we depend on is compiled as ever, and so need not be a second time.
case " $* " in
*" --crate-name acp_relay "* | *" fuzz_targets/"*)
    exec "$@" --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
        -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
    ;;
*) exec "$@" ;;
esac
