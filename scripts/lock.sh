#!/bin/sh
# Makes locks/core.txt, locks/sigstore.txt and locks/dev.txt from pyproject.toml. For maintainers; needs the package index once.
#
# Existing pins are kept where they still fit; `UPGRADE=1 make lock` takes the newest that do.
# The locks are universal (every platform, Python 3.11 and newer), pinned and hashed, and name no address:
# whatever index the machine's own pip is set up with serves them, and the hashes decide.
set -eu
cd "$(dirname "$0")/.."
mkdir -p .make

if command -v uv >/dev/null 2>&1; then
    uv=uv
else
    [ -x .make/lock-venv/bin/uv ] || {
        python3 -m venv --clear .make/lock-venv
        .make/lock-venv/bin/python -m pip --disable-pip-version-check --no-input --quiet install 'uv>=0.8,<1'
    }
    uv=.make/lock-venv/bin/uv
fi

compile() {
    kind=$1
    shift
    new=.make/$kind.txt
    cp "locks/$kind.txt" "$new" 2>/dev/null || : >"$new"
    "$uv" pip compile pyproject.toml "$@" --universal --python-version 3.11 --generate-hashes --no-annotate \
        --no-emit-index-url --no-emit-find-links --no-header --quiet ${UPGRADE:+--upgrade} -o "$new"
    {
        echo "# Made by \`make lock\` from pyproject.toml; do not edit. Universal, Python 3.11 and newer, hashed, no address."
        echo "# Installed with: pip install --require-hashes --no-deps -r locks/$kind.txt"
        cat "$new"
    } >"$new.part"
    mv "$new.part" "locks/$kind.txt"
}

compile dev --group dev
# The core takes the very pins of the development lock, so that both can share one environment; with the extra
# `sigstore` it is what the GitHub Action installs where identities are asked for.
compile core --group build --constraint locks/dev.txt
compile sigstore --group build --extra sigstore --constraint locks/dev.txt
