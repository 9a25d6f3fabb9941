#!/bin/sh
# Counts the instructions of framing, reading, decoding, recording and summarising, and compares them with
# instructions.toml beside this file: host/benches/instructions.sh [WORKLOAD...] [--bless]
#
# It needs valgrind, and `cargo xtask plugins --shipping` to have run: the counts of decoding with
# the components of `cargo xtask plugins` are 30 to 40 % higher. The build is that of `cargo bench`. Where
# one is at hand already, INSTRUCTIONS_BINARY names it and INSTRUCTIONS_BUILD says what it is:
#
#   INSTRUCTIONS_BINARY=target/debug/deps/instructions-0123 INSTRUCTIONS_BUILD=dev host/benches/instructions.sh
set -eu

if ! command -v valgrind >/dev/null; then
    echo "valgrind is not there; install it (Debian, Ubuntu: apt-get install valgrind)" >&2
    exit 1
fi
if [ -n "${INSTRUCTIONS_BINARY:-}" ]; then
    if [ -z "${INSTRUCTIONS_BUILD:-}" ]; then
        echo "INSTRUCTIONS_BUILD must say which build $INSTRUCTIONS_BINARY is, such as dev" >&2
        exit 1
    fi
    exec "$INSTRUCTIONS_BINARY" "$@"
fi
cd "$(dirname "$0")/../.."
exec cargo bench --quiet --bench instructions -- "$@"
