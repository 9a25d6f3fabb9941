#!/bin/bash
# Stands for every tool that a workflow calls: notes the call, leaves what later steps need, and refuses what it does not
# know. `cargo xtask release` and `release-notes` are real.
set -euo pipefail
line="${0##*/} $*"
echo "$JOB: $line" >> "$LOG"

refuse() {
    echo "recorder: $*" >&2
    exit 97
}
right() {
    [[ " $RIGHTS " == *" $1 "* ]] || refuse "$JOB has no right \`$1\`"
}

# shellcheck disable=SC2053 # a pattern
if [[ -n $BREAK && "$JOB: $line" == $BREAK ]]; then
    echo "recorder: broken, as the test wants" >&2
    exit 1
fi

readonly REPOSITORY=https://github.example/Owner/Runner

case "$line" in
"cargo xtask release "* | "cargo xtask release-notes"*)
    exec "$XTASK" "${@:2}" --root "$PWD"
    ;;
"cargo xtask test" | "cargo install --locked mdbook@"* | "rustup target add "*) ;;
"python3 -m pip install --break-system-packages ziglang=="*) ;;
"cargo xtask guide")
    mkdir -p target/guide
    echo page > target/guide/index.html
    ;;
"cargo xtask package all --target "*" --repository $REPOSITORY")
    version=$("$XTASK" release --show --root "$PWD")
    target=$5
    case "$target" in
    x86_64-*) wheel=x86_64 deb=amd64 npm=x64 ;;
    aarch64-*) wheel=aarch64 deb=arm64 npm=arm64 ;;
    *) refuse "target $target" ;;
    esac
    mkdir -p target/packages
    cd target/packages
    for name in "runner-$version-$target".{tar.gz,oci.tar,cdx.json} "runner_llm-$version-py3-none-manylinux_2_17_$wheel.whl" \
        "runner-llm_${version}_$deb.deb" "runner-llm-linux-$npm-$version.tgz" "runner-llm-$version.tgz" runner-llm.rb; do
        [[ $name == "$FORGET" ]] || echo "$name" > "$name"
    done
    sha256sum -- * > ../SHA256SUMS
    mv ../SHA256SUMS .
    # Changed after its digest was written.
    if [[ -n $SPOIL && -e $SPOIL ]]; then echo more >> "$SPOIL"; fi
    ;;
"cargo xtask package formula --output target/gathered --repository $REPOSITORY")
    cd target/gathered
    for name in runner-llm.rb flake.nix package.nix; do
        echo *.tar.gz > "$name"
    done
    rm -f SHA256SUMS
    sha256sum -- * > ../SHA256SUMS
    mv ../SHA256SUMS .
    ;;
"gh release create "*" --draft --verify-tag --title "*" --notes-file target/notes.md "*)
    right contents=write
    [[ -n $GH_TOKEN && -n $GH_REPO && -s target/notes.md ]] || refuse "$line"
    for file in "${@:9}"; do [[ -s $file ]] || refuse "no file $file"; done
    ;;
"gh release edit "*" --draft=false --latest")
    right contents=write
    [[ -n $GH_TOKEN && -n $GH_REPO ]] || refuse "$line"
    ;;
"npm view "*"@"*" version")
    [[ " $PUBLISHED " == *" $2 "* ]] || { echo "npm error code E404" >&2; exit 1; }
    echo "${2##*@}"
    ;;
"npm publish ./target/gathered/"*".tgz --provenance --access public")
    right id-token=write
    [[ -s $2 ]] || refuse "no file $2"
    ;;
"cosign login ghcr.io --username "*" --password-stdin")
    right packages=write
    [[ $(cat) == "$EXPECTED_TOKEN" ]] || refuse "another token"
    ;;
"cosign sign --yes --recursive ghcr.io/"*"@sha256:"*)
    right id-token=write
    [[ $4 != *[A-Z]* ]] || refuse "a name of an image in capitals: $4"
    ;;
"podman manifest create runner") ;;
"podman manifest add runner oci-archive:target/gathered/"*)
    [[ -s ${4#oci-archive:} ]] || refuse "no file $4"
    ;;
"podman manifest push --all "*"runner docker://ghcr.io/"*)
    right packages=write
    if [[ $4 == --digestfile ]]; then printf 'sha256:%064d' 7 > "$5"; fi
    ;;
*) refuse "unknown: $line" ;;
esac
