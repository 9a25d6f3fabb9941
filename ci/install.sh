#!/usr/bin/env bash
# Puts the command `runner` into a folder: a link to a binary that is there, or a release that is
# downloaded and verified before anything of it runs.
#
#   BENCHMARK_TOOLS        the folder
#   BENCHMARK_BINARY       the path of a binary; or, instead of it:
#   BENCHMARK_VERSION      the version of a release
#   BENCHMARK_SHA256       the SHA-256 of the release's file for this machine; without it, the
#                          release's attestation is verified with `gh`
#   BENCHMARK_REPOSITORY   the repository of the releases, as OWNER/NAME
#   BENCHMARK_SERVER       its server
set -euo pipefail

fail() {
    echo "error: $*" >&2
    exit 2
}

tools=${BENCHMARK_TOOLS:?}
mkdir -p "$tools"
if [[ -n ${BENCHMARK_BINARY:-} ]]; then
    [[ -x $BENCHMARK_BINARY && -f $BENCHMARK_BINARY ]] \
        || fail "binary: $BENCHMARK_BINARY is not a file that can be run"
    ln -sf "$(realpath -- "$BENCHMARK_BINARY")" "$tools/runner"
    exit
fi

version=${BENCHMARK_VERSION:-}
[[ -n $version ]] || fail "version: name the version of a release, or a binary"
[[ $version =~ ^[0-9A-Za-z.+-]+$ ]] || fail "version: expected one such as 1.2.3"
case $(uname -sm) in
    'Linux x86_64') target=x86_64-unknown-linux-musl ;;
    'Linux aarch64') target=aarch64-unknown-linux-musl ;;
    *) fail "there is no release for $(uname -sm); build the program, and name the binary" ;;
esac
name=runner-$version-$target.tar.gz
url=${BENCHMARK_SERVER:?}/${BENCHMARK_REPOSITORY:?}/releases/download/v$version/$name
file=$tools/$name
curl --fail --location --silent --show-error --retry 3 --output "$file" -- "$url"
if [[ -n ${BENCHMARK_SHA256:-} ]]; then
    [[ $BENCHMARK_SHA256 =~ ^[0-9a-f]{64}$ ]] || fail "sha256: expected 64 hexadecimal digits"
    echo "$BENCHMARK_SHA256  $file" | sha256sum --check --strict --quiet \
        || fail "sha256: $url is another file: $(sha256sum <"$file")"
else
    command -v gh >/dev/null || fail "sha256: give the SHA-256 of $name; there is no gh to verify its attestation with"
    gh attestation verify "$file" --repo "$BENCHMARK_REPOSITORY" \
        || fail "sha256: the attestation of $url does not hold; give the SHA-256 that you trust"
fi
# The program alone, wherever it lies within the archive.
tar --extract --gzip --file "$file" --directory "$tools" --no-anchored --transform 's,.*/,,' runner
rm -f -- "$file"
chmod +x "$tools/runner"
