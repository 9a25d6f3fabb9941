#!/usr/bin/env bash
# Writes the summary into a note on the merge request, or replaces the note of an earlier pipeline. A
# hidden mark identifies the note, and notes of other authors never change. A failure to write fails
# no build.
#
#   BENCHMARK_TOKEN   an access token with the scope `api`, as a masked variable; a job's own token
#                     may not write notes. Without a token, nothing is written
set -euo pipefail

give_up() {
    echo "warning: no note: $*; the artifacts have the summary" >&2
    exit 0
}

[[ -n ${CI_MERGE_REQUEST_IID:-} ]] || exit 0
[[ -n ${BENCHMARK_TOKEN:-} ]] || give_up "BENCHMARK_TOKEN is not set"
notes=${CI_API_V4_URL:?}/projects/${CI_MERGE_REQUEST_PROJECT_ID:?}/merge_requests/$CI_MERGE_REQUEST_IID/notes
mark="<!-- runner-benchmark: ${BENCHMARK_NAME:?} -->"

# Asks the API. The token goes through a pipe, because arguments are visible to all users.
ask() {
    curl --silent --show-error --fail --max-time 60 \
        --header @<(printf 'PRIVATE-TOKEN: %s\n' "$BENCHMARK_TOKEN") \
        --header 'Content-Type: application/json' "$@"
}

author=$(ask "$CI_API_V4_URL/user" | jq .id) || give_up "BENCHMARK_TOKEN is not valid"
known=
for page in {1..30}; do
    found=$(ask "$notes?per_page=100&page=$page") || give_up "earlier notes cannot be listed"
    known=$(jq -r --arg mark "$mark" --argjson author "$author" \
        'map(select(.author.id == $author and (.body | startswith($mark))))[0].id // ""' <<<"$found")
    [[ -z $known && $(jq length <<<"$found") == 100 ]] || break
done

# GitLab takes 1,000,000 characters.
body=$(jq -Rs --arg mark "$mark" '{body: ($mark + "\n" + .[:900000])}' <"${BENCHMARK_RESULTS:?}/summary.md")
if [[ -n $known ]]; then
    ask --request PUT --data @- "$notes/$known" <<<"$body" >/dev/null || give_up "the note of an earlier pipeline cannot be updated"
else
    ask --request POST --data @- "$notes" <<<"$body" >/dev/null || give_up "GitLab refused it"
fi
