#!/usr/bin/env bash
# Writes the summary into a comment on a pull request, or replaces the comment of an earlier build. A
# hidden mark identifies the comment, and comments of other authors never change. A failure to write
# fails no build.
set -euo pipefail

api=${GITHUB_API_URL:?}/repos/${GITHUB_REPOSITORY:?}
mark="<!-- runner-benchmark: ${BENCHMARK_NAME:?} -->"

give_up() {
    echo "::warning title=Benchmark::no comment: $*; the summary of this job has the result"
    exit 0
}

# Asks the API. The token goes through a pipe, because arguments are visible to all users.
ask() {
    curl --silent --show-error --fail --max-time 60 \
        --header @<(printf 'Authorization: Bearer %s\n' "${BENCHMARK_TOKEN:?}") \
        --header 'Accept: application/vnd.github+json' \
        --header 'X-GitHub-Api-Version: 2022-11-28' "$@"
}

known=
for page in {1..30}; do
    comments=$(ask "$api/issues/${BENCHMARK_PULL_REQUEST:?}/comments?per_page=100&page=$page") \
        || give_up "earlier comments cannot be listed; give the job the permission pull-requests: write"
    known=$(jq -r --arg mark "$mark" --arg author "${BENCHMARK_AUTHOR:?}" \
        'map(select(.user.login == $author and (.body | startswith($mark))))[0].id // ""' <<<"$comments")
    [[ -z $known && $(jq length <<<"$comments") == 100 ]] || break
done

# GitHub takes 65,536 characters.
body=$(jq -Rs --arg mark "$mark" '
    if length > 65000 then .[:64000] + "\n\n… The summary of the job has the rest.\n" else . end
    | {body: ($mark + "\n" + .)}' <"$BENCHMARK_RESULTS/summary.md")
if [[ -n $known ]]; then
    ask --request PATCH --data @- "$api/issues/comments/$known" <<<"$body" >/dev/null \
        || give_up "the comment of an earlier build cannot be updated"
else
    ask --request POST --data @- "$api/issues/$BENCHMARK_PULL_REQUEST/comments" <<<"$body" >/dev/null \
        || give_up "give the job the permission pull-requests: write"
fi
