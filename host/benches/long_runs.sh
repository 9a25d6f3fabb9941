#!/usr/bin/env bash
# Long runs, and whether memory, file descriptors and threads stay flat:
#
#   host/benches/long_runs.sh [requests|streams|repeats]...
#
#   requests   a million requests of 128 events each, 256 at a time (REQUESTS changes the number)
#   streams    10,000 streams for ten minutes, an event a second each (STREAMS, DURATION)
#   repeats    a hundred runs, one after the other, in one process (REPEATS)
#
# Each load runs against `runner mock`. Once a second, what the runner's process has is read from /proc; printed are the
# figures at a tenth, at half and at nine tenths of its time, and the peak. RUNNER names the program under test; the
# default is the release build.
set -euo pipefail
cd "$(dirname "$0")/../.."

runner=${RUNNER:-target/release/runner}
[[ -x $runner ]] || { echo "$runner is not there: cargo build --release, or name another in RUNNER" >&2; exit 2; }
folder=$(mktemp -d)
mock=
trap '[[ -z $mock ]] || kill "$mock" 2>/dev/null; rm -rf "$folder"' EXIT

engine() { # FLAGS: starts an engine, and sets `address`
    "$runner" mock --port 0 "$@" >"$folder/mock" & mock=$!
    until address=$(sed -n 's/^listening on //p' "$folder/mock") && [[ -n $address ]]; do sleep 0.1; done
}

sample() { # PID: a line a second: RSS in KiB, descriptors, threads
    local pid=$1
    while kill -0 "$pid" 2>/dev/null; do
        awk '/^VmRSS/ { rss = $2 } /^Threads/ { threads = $2 } END { printf "%d ", rss; printf "%d ", threads }' \
            "/proc/$pid/status" 2>/dev/null || break
        ls "/proc/$pid/fd" 2>/dev/null | wc -l
        sleep 1
    done
}

run() { # NAME FLAGS: runs, samples, and prints
    local name=$1; shift
    "$runner" run --backend openai --dataset-name random --random-input-len 32 --base-url "$address" \
        --warmup-requests 0 --output-dir "$folder/out" --json "$@" >"$folder/result" 2>"$folder/errors" & local pid=$!
    sample "$pid" | grep -E '^[0-9]+ [0-9]+ [0-9]+$' >"$folder/samples" || true
    local rc=0
    wait "$pid" || rc=$?
    echo "$name: exit code $rc after $(wc -l <"$folder/samples") s"
    awk '
        { rss[NR] = $1; threads[NR] = $2; fds[NR] = $3; if ($1 > peak) peak = $1 }
        function at(share,   n) { n = int(NR * share); return n < 1 ? 1 : n }
        function row(what, n) {
            printf "  %-12s %6.0f MiB, %5d descriptors, %3d threads\n", what, rss[n] / 1024, fds[n], threads[n]
        }
        END {
            row("at a tenth", at(0.1)); row("at half", at(0.5)); row("at 9 tenths", at(0.9))
            printf "  peak         %6.0f MiB\n", peak / 1024
        }' "$folder/samples"
    if [[ $rc != 0 ]]; then tail -3 "$folder/errors"; fi
    kill "$mock"; wait "$mock" 2>/dev/null || true; mock=
    rm -rf "$folder/out"
}

(($#)) || set -- requests streams repeats
for load in "$@"; do
    case $load in
    requests)
        engine --ttft 0ms --itl 0ms --fault "kind = 'merge', events = 8"
        run "${REQUESTS:-1000000} requests of 128 events" --num-prompts "${REQUESTS:-1000000}" --random-output-len 128 \
            --max-concurrency 256 --request-rate inf
        ;;
    streams)
        engine --ttft 1s --itl 1s
        run "${STREAMS:-10000} streams for ${DURATION:-10m}" --duration "${DURATION:-10m}" --random-output-len 60 \
            --arrival closed --concurrency "${STREAMS:-10000}"
        ;;
    repeats)
        engine --ttft 1ms --itl 1ms
        run "${REPEATS:-100} runs" --repeat "${REPEATS:-100}" --num-prompts 64 --random-output-len 64 --request-rate inf
        ;;
    *) echo "$load is no load; there are requests, streams and repeats" >&2; exit 2 ;;
    esac
done
