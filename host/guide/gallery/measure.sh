#!/usr/bin/env bash
# Measures the gallery anew, on a real vLLM for the CPU: half an hour on two cores.
#
#   measure.sh ENGINE
#
# ENGINE is the folder that `host/benches/engines/install-vllm.sh` installed. `runner` must be in the PATH. The gallery keeps
# only the files that reports need.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || :; rm -rf "$work"' EXIT
ln -s "$(realpath "$1")" "$work/engine"
cp "$here"/*.toml "$here/../../benches/engines/install-vllm.sh" "$work/"
# Runs keep their paths, so these are short and the same everywhere.
cd "$work"

# up OPTIONS...: starts the engine with these options.
up() {
    bash install-vllm.sh engine serve "$@" >log 2>&1 &
    server=$!
}
down() {
    kill "$server"
    wait "$server" || :
}
# keep NAME: moves the last runs to the gallery's folder NAME, without pages, without summaries, which are functions of the
# records, and without paths of this machine. Repeats are NAME-1, NAME-2 and so on, as in reports.
keep() {
    local name=$1 found=(out/*)
    find out -name logs -prune -exec rm -r {} +
    find out \( -name summary.json -o -name command.json -o -name lock -o -name '*.html' -o -name '*.md' \) -delete
    rm -rf "${here:?}/$name"
    if ((${#found[@]} == 1)); then
        mv "${found[0]}" "$here/$name"
    else
        mkdir "$here/$name"
        local number=0 run
        for run in "${found[@]}"; do
            number=$((number + 1))
            mv "$run" "$here/$name/$name-$number"
        done
    fi
}
with=(--base-url http://127.0.0.1:8200 --tokenizer engine/tiny --ready-check-timeout-sec 300 --output-dir out --no-progress)
export RUNNER_ALLOW_INVALID=1

up
runner run short.toml "${with[@]}" --num-prompts 500 --launch-command 'vllm serve tiny --max-num-seqs 64'
keep run
runner sweep short.toml "${with[@]}" --rates 2,4,8,16,32,64 --num-prompts 100
keep sweep
runner run short.toml "${with[@]}" --repeat 4 --same-requests --request-rate 12 --cache salt --launch-command 'vllm serve tiny --max-num-seqs 64'
keep repeats
down
up --max-num-seqs 2
runner run short.toml "${with[@]}" --repeat 4 --same-requests --request-rate 12 --cache salt --launch-command 'vllm serve tiny --max-num-seqs 2'
keep two-slots
down
runner lab lab.toml --output-dir out/lab
keep lab
