#!/bin/sh
# Installs `runner`, its man pages and its completions below a prefix: from a program that is there, or
# from a release, which is downloaded and verified before anything of it runs.
#
#   PREFIX              the prefix; the default is ~/.local
#   INSTALL_PROGRAM     the path of a program; or, instead of it:
#   INSTALL_REPOSITORY  the address of the repository of the releases
#   INSTALL_VERSION     the version of a release; the default is the latest
#   INSTALL_SHA256      the SHA-256 of the release's archive for this machine; the default is the digest
#                       in the release's SHA256SUMS
#   INSTALL_ATTESTED    the repository as OWNER/NAME: without INSTALL_SHA256, `gh` then verifies its
#                       attestation of the archive
set -eu

fail() {
    echo "install.sh: $*" >&2
    exit 2
}

# Downloads a file of the release.
download() {
    curl --fail --location --silent --show-error --retry 3 --output "$folder/$1" -- "$release/$1" \
        || fail "no release at $release; \`cargo xtask install\` in a checkout builds and installs the program"
}

# Downloads, verifies and unpacks the archive of a release.
fetch() {
    [ -n "${INSTALL_REPOSITORY:-}" ] \
        || fail "nothing is published yet; run \`cargo xtask install\` in a checkout, or set INSTALL_REPOSITORY"
    case $(uname -sm) in
        'Linux x86_64') target=x86_64-unknown-linux-musl ;;
        'Linux aarch64') target=aarch64-unknown-linux-musl ;;
        *) fail "there is no release for $(uname -sm); build the program, and set INSTALL_PROGRAM" ;;
    esac
    case ${INSTALL_VERSION:-} in
        '') release=$INSTALL_REPOSITORY/releases/latest/download ;;
        *[!0-9A-Za-z.+-]*) fail "INSTALL_VERSION: expected one such as 1.2.3, found $INSTALL_VERSION" ;;
        *) release=$INSTALL_REPOSITORY/releases/download/v$INSTALL_VERSION ;;
    esac
    folder=$(mktemp -d)
    trap 'rm -rf -- "$folder"' EXIT
    download SHA256SUMS
    line=$(grep "^[0-9a-f]\{64\}  runner-[^/]*-$target\.tar\.gz$" "$folder/SHA256SUMS") \
        || fail "$release/SHA256SUMS lists no archive for $target"
    name=${line##* }
    download "$name"
    archive=$folder/$name
    if [ -z "${INSTALL_SHA256:-}" ] && [ -n "${INSTALL_ATTESTED:-}" ]; then
        version=${name#runner-}
        gh attestation verify "$archive" --repo "$INSTALL_ATTESTED" \
            --signer-workflow "$INSTALL_ATTESTED/.github/workflows/release.yml" \
            --source-ref "refs/tags/v${INSTALL_VERSION:-${version%%-*}}" \
            || fail "\`gh\` verifies no attestation of $release/$name; set the SHA-256 that you trust"
    else
        expected=${INSTALL_SHA256:-${line%% *}}
        found=$(sha256sum <"$archive")
        [ "${found%% *}" = "$expected" ] \
            || fail "$release/$name: expected SHA-256 $expected, found ${found%% *}; nothing is installed"
    fi
    tar -xzf "$archive" -C "$folder"
    program=$folder/${name%.tar.gz}/runner
}

# A function, so that a shell which reads half of this file runs nothing.
main() {
    program=${INSTALL_PROGRAM:-}
    [ -n "$program" ] || fetch
    program=$(realpath -- "$program")
    "$program" --version >/dev/null || fail "$program is not a program that runs here"
    prefix=${PREFIX:-$HOME/.local}
    mkdir -p -- "$prefix/bin"
    prefix=$(realpath -- "$prefix")
    # A copy: a link ends with the folder of the build. `install` replaces a program that runs.
    install -m 755 -- "$program" "$prefix/bin/runner"
    echo "$prefix/bin/runner"
    for place in bash:bash-completion/completions/runner zsh:zsh/site-functions/_runner \
        fish:fish/vendor_completions.d/runner.fish; do
        file=$prefix/share/${place#*:}
        mkdir -p -- "${file%/*}"
        "$program" completions "${place%%:*}" >"$file"
        echo "$file"
    done
    "$program" man --output "$prefix/share/man/man1"
    printf '%s\n' "$prefix"/share/man/man1/runner.1 "$prefix"/share/man/man1/runner-*.1
    case :$PATH: in
        *":$prefix/bin:"*) ;;
        *) echo "$prefix/bin is not in PATH; put this into your shell's profile: export PATH=\"$prefix/bin:\$PATH\"" ;;
    esac
}

main
