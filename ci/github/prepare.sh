#!/usr/bin/env bash
# Sets the outputs for the other steps: folders, the baseline's key, and the pull request to comment
# on. All inputs are variables and the event's file.
set -euo pipefail

fail() {
    echo "::error title=Benchmark::$*"
    exit 2
}

for tool in curl jq; do
    command -v "$tool" >/dev/null || fail "this machine has no $tool, which the step needs"
done
name=${BENCHMARK_NAME:?}
[[ $name =~ ^[A-Za-z0-9.-]+$ ]] || fail "name: expected letters, digits, dots and hyphens"
results=${BENCHMARK_RESULTS:?}
[[ $results =~ ^[A-Za-z0-9._/-]+$ ]] || fail "results: expected a path of letters, digits, dots, hyphens and slashes"

branch=$(jq -r '.repository.default_branch // ""' "$GITHUB_EVENT_PATH")
case ${BENCHMARK_UPDATE:?} in
    true | false) stores=$BENCHMARK_UPDATE ;;
    auto)
        stores=false
        case $GITHUB_EVENT_NAME in
            push | schedule) [[ -z $branch || ${GITHUB_REF:-} != "refs/heads/$branch" ]] || stores=true ;;
        esac
        ;;
    *) fail "update-baseline: expected auto, true or false" ;;
esac

# A comment needs a token that may write. A pull request from a fork has no such token.
pull_request=
case $GITHUB_EVENT_NAME in
    pull_request | pull_request_target)
        if [[ $BENCHMARK_COMMENT == true ]]; then
            number=$(jq -r '.pull_request.number' "$GITHUB_EVENT_PATH")
            from=$(jq -r '.pull_request.head.repo.full_name // ""' "$GITHUB_EVENT_PATH")
            [[ $number =~ ^[0-9]+$ ]] || fail "the event names no pull request"
            if [[ $BENCHMARK_TOKEN_IS_GIVEN != true ]]; then
                echo "::notice title=Benchmark::no comment, because there is no token; the summary of this job has the result"
            elif [[ $GITHUB_EVENT_NAME == pull_request && $from != "$GITHUB_REPOSITORY" ]]; then
                echo "::notice title=Benchmark::no comment, because a pull request from a fork has no token that may write one; the summary of this job has the result"
            else
                pull_request=$number
            fi
        fi
        ;;
esac

# Machines of one label have different processors, and each kind has its own baseline. Without a
# baseline of this kind, the newest baseline of another kind shows why nothing is compared.
machine=$({ grep -m 1 '^model name' /proc/cpuinfo || :; nproc; uname -m; } | sha256sum | cut -c 1-12)
prefix=runner-baseline/$name/
rm -rf -- "$results/baseline"
{
    echo "results=$results"
    echo "baseline=$results/baseline"
    echo "tools=$RUNNER_TEMP/runner-benchmark"
    echo "stores=$stores"
    echo "pull-request=$pull_request"
    echo "key=$prefix$machine/$GITHUB_RUN_ID-$GITHUB_RUN_ATTEMPT"
    echo "restore-keys<<END"
    echo "$prefix$machine/"
    echo "$prefix"
    echo END
} >>"$GITHUB_OUTPUT"
