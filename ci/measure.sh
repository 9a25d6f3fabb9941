#!/usr/bin/env bash
# Starts an engine, measures it several times, and stops it; then `runner ci` judges the build. Lists
# have an item a line.
#
#   BENCHMARK_SCENARIO       the scenario's file
#   BENCHMARK_ENGINE         the command that starts the engine and stays in the foreground; empty
#                            for a running engine
#   BENCHMARK_URL            the engine's base URL, unless the scenario names it
#   BENCHMARK_READY_TIMEOUT  the seconds to wait until the engine is ready
#   BENCHMARK_REPEAT         the number of runs
#   BENCHMARK_ARGUMENTS      further words for `runner run`, a list
#   BENCHMARK_THRESHOLDS     thresholds, a list
#   BENCHMARK_FAIL_IF        conditions on the difference from the baseline, a list
#   BENCHMARK_MUST_AGREE     kinds of settings that must agree with the baseline's, a list
#   BENCHMARK_ALLOW          kinds of settings that may differ from the baseline's, a list
#   BENCHMARK_STRICT         true, if a baseline that is not comparable fails the build
#   BENCHMARK_TREND          true, if the summary has the trend over the commits of the baseline; the
#                            system names the commit
#   BENCHMARK_FORMAT         the output format of `runner ci`
#   BENCHMARK_RESULTS        the folder of the results; in it, `baseline` holds the baseline's runs
#
# The results are runs, summary.md, junit.xml, report.html and engine.log; and history.db, the index
# of the baseline's earlier runs and these. The exit code comes from `runner ci`, from an earlier
# failure, or from `runner trend`.
set -euo pipefail

results=${BENCHMARK_RESULTS:?}
scenario=${BENCHMARK_SCENARIO:?}
mkdir -p "$results"
rm -rf -- "${results:?}"/{runs,summary.md,junit.xml,report.html,engine.log,history.db}

# The log takes commands again.
quiet=
resume() {
    [[ -z $quiet ]] || printf '\n::%s::\n' "$quiet"
    quiet=
}

# Ends with a code, and states the reason on stderr, in an annotation and in the summary.
fail() {
    local code=$1
    shift
    resume
    echo "error: $*" >&2
    [[ ${BENCHMARK_FORMAT:-text} != github ]] || echo "::error title=Benchmark::not measured (exit code $code)"
    printf '## ❌ Benchmark: not measured\n\nExit code %s. The log of this job has the reason.\n' "$code" \
        >"$results/summary.md"
    exit "$code"
}

# Adds a flag for each line of a list to `flags`.
flags=()
each() {
    local line
    while IFS= read -r line; do
        line=${line#"${line%%[![:space:]]*}"}
        line=${line%"${line##*[![:space:]]}"}
        [[ -z $line ]] || flags+=(${1:+"$1"} "$line")
    done <<<"$2"
}

# Ends a process: sends signals to it, or to its group, 20 seconds apart, until it has ended.
end() {
    local process=$1 to=$2 signal
    for signal in "${@:3}"; do
        kill "-$signal" -- "$to" 2>/dev/null || break
        for _ in {1..100}; do
            kill -0 "$process" 2>/dev/null || break 2
            sleep 0.2
        done
    done
    wait "$process" 2>/dev/null || :
}

# Kills the run if it does not end, for example because a reply never ends. The engine has a process
# group of its own, so that all its processes are stopped.
run=
engine=
stop() {
    [[ -z $run ]] || end "$run" "$run" TERM TERM KILL
    run=
    [[ -n $engine ]] || return 0
    end "$engine" "-$engine" TERM KILL
    kill -KILL -- "-$engine" 2>/dev/null || :
    engine=
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [[ -n ${BENCHMARK_ENGINE:-} ]]; then
    set -m
    bash -c "$BENCHMARK_ENGINE" >"$results/engine.log" 2>&1 </dev/null &
    engine=$!
    set +m
fi

[[ -z ${BENCHMARK_URL:-} ]] || flags+=(--base-url "$BENCHMARK_URL")
flags+=(--repeat "${BENCHMARK_REPEAT:-5}" --same-requests)
flags+=(--ready-check-timeout-sec "${BENCHMARK_READY_TIMEOUT:-600}")
flags+=(--output-dir "$results/runs")
each --threshold "${BENCHMARK_THRESHOLDS:-}"
each '' "${BENCHMARK_ARGUMENTS:-}"

# The system that reads this log must not take texts of engines and scenarios for commands.
if [[ ${BENCHMARK_FORMAT:-text} == github ]]; then
    quiet=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    echo "::stop-commands::$quiet"
fi
runner run "$scenario" "${flags[@]}" &
run=$!
died=
while kill -0 "$run" 2>/dev/null; do
    if [[ -n $engine ]] && ! kill -0 "$engine" 2>/dev/null; then
        died=yes
        break
    fi
    sleep 0.2
done
code=0
if [[ -n $died ]]; then
    ended=0
    wait "$engine" || ended=$?
    # Processes that the engine started may still hold its connections open.
    kill -KILL -- "-$engine" 2>/dev/null || :
    stop
    echo "the end of the engine's log:"
    tail -n 20 "$results/engine.log"
else
    wait "$run" || code=$?
    run=
fi
stop
[[ -z $died ]] || fail 5 "the engine ended with exit code $ended before the runs did; its command must stay in the foreground until it is stopped"
case $code in
    0 | 6 | 7) ;;
    # A run whose requests all failed is judged like the others.
    5) [[ -d $results/runs ]] || fail 5 "the engine could not be measured" ;;
    *) fail "$code" "runner run ended with exit code $code" ;;
esac

flags=(--baseline "$results/baseline" --output-dir "$results" --format "${BENCHMARK_FORMAT:-text}")
each --fail-if "${BENCHMARK_FAIL_IF:-}"
each --must-agree "${BENCHMARK_MUST_AGREE:-}"
each --allow "${BENCHMARK_ALLOW:-}"
[[ ${BENCHMARK_STRICT:-false} != true ]] || flags+=(--strict)
runner report "$results/runs" --format html --output "$results/report.html" || :
code=0
judged=$(runner ci "$results/runs" "${flags[@]}") || code=$?
resume
printf '%s\n' "$judged"
[[ -f $results/summary.md ]] || fail "$code" "runner ci ended with exit code $code"

# The trend over the commits of the default branch, and this one.
commit=${GITHUB_SHA:-${CI_COMMIT_SHA:-}}
if [[ ${BENCHMARK_TREND:-false} == true && -n $commit ]]; then
    history=(--store "$results/history.db")
    [[ ! -f $results/baseline/history.db ]] || cp -- "$results/baseline/history.db" "$results/"
    if runner store add "$results/runs" --tag "version=${commit:0:12}" "${history[@]}" >/dev/null; then
        ended=0
        runner trend "${history[@]}" --format markdown >"$results/trend.md" || ended=$?
        { echo && cat "$results/trend.md"; } >>"$results/summary.md"
        rm -f -- "$results/trend.md"
        [[ $code != 0 || $ended != 6 ]] || code=6
    fi
fi
exit "$code"
