#!/bin/sh
# Sets up this checkout: `sh scripts/bootstrap.sh core` for the program alone, `dev` for its tests as well.
#
# Makes .venv from locks/core.txt or locks/dev.txt (every package pinned and checked by hash), installs the
# project into it, and sees that the system programs are there. System packages are installed when this
# runs as root or YES=1 is set (through sudo); otherwise the one command needed is shown, once.
# PYTHON=... names another interpreter. The tests start a PostgreSQL server of their own, so `dev` wants Debian's
# package for its programs alone: a setting put beside it keeps the package from starting a server too. Safe to interrupt, to run again, and to run twice at once.
#
# Exit: 0 ready; 2 something is needed that only you can give; anything else is the failing tool's own.
set -eu

KIND=${1:-}
case $KIND in
core | dev) ;;
*)
    echo "usage: sh scripts/bootstrap.sh core|dev" >&2
    exit 2
    ;;
esac

cd "$(dirname "$0")/.."
ROOT=$(pwd -P)
LOCK=locks/$KIND.txt
unset PYTHONHOME PYTHONPATH

say() { echo "set-up: $*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

is_new_enough() {
    have "$1" && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for name in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python3.14; do
        if is_new_enough "$name"; then
            echo "$name"
            return
        fi
    done
    found=$(python3 --version 2>/dev/null || echo "no python3")
    say "Python 3.11 or newer is needed; found: $found. Install one, or name it: make PYTHON=/path/to/python3 ..."
    exit 2
}

# What the installed state depends on. The path counts because the scripts of an environment hold it.
key() {
    "$PYTHON" - "$ROOT" locks/core.txt locks/dev.txt pyproject.toml scripts/bootstrap.sh <<'END'
import hashlib, sys
whole = hashlib.sha256(f"{sys.version}\n{sys.argv[1]}\n".encode())
for name in sys.argv[2:]:
    with open(name, "rb") as file:
        whole.update(hashlib.sha256(file.read()).digest())
print(whole.hexdigest())
END
}

# The development environment holds the core as well: dev.txt pins what core.txt pins.
environment_ready() {
    [ -x .venv/bin/python ] || return 1
    [ "$(cat .venv/ready-dev 2>/dev/null)" = "$KEY" ] && return
    [ "$KIND" = core ] && [ "$(cat .venv/ready-core 2>/dev/null)" = "$KEY" ]
}

# Where Debian puts the programs of a PostgreSQL server, and what its packages read before they make a cluster.
POSTGRES=${POSTGRES:-/usr/lib/postgresql}
POSTGRES_ETC=${POSTGRES_ETC:-/etc/postgresql-common}
NO_CLUSTER="create_main_cluster = false"

has_server() {
    for program in "$POSTGRES"/*/bin/initdb; do
        [ -x "$program" ] && return
    done
    have initdb && have postgres
}

# The Debian packages that are missing, one word each.
missing_packages() {
    if [ "$(uname -s)" = Linux ]; then
        have strace || echo strace
        have bwrap || echo bubblewrap
        [ "$KIND" = core ] || has_server || echo postgresql
    fi
    # Debian keeps the part of Python that makes environments in a package of its own.
    if ! environment_ready && ! "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null; then
        "$PYTHON" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])'
    fi
}

install_packages() {
    if ! have apt-get; then
        say "please install these with your system's package manager, then run this again: $*"
        exit 2
    fi
    update="apt-get update"
    install="apt-get install -y --no-install-recommends $*"
    as_root=
    quiet=
    case " $* " in
    *" postgresql "*)
        # Whoever has the packages already has decided about clusters.
        [ -e "$POSTGRES_ETC" ] || quiet=$POSTGRES_ETC/createcluster.d
        ;;
    esac
    asked="$update && $install"
    if [ -n "$quiet" ]; then
        asked="$update && mkdir -p $quiet && echo '$NO_CLUSTER' >$quiet/tests.conf && $install"
    fi
    if [ "$(id -u)" != 0 ]; then
        as_root=sudo
        answer=${YES:-}
        if [ -z "$answer" ] && [ -t 0 ] && have sudo; then
            printf 'set-up: these system packages are missing: %s. Run "sudo %s" now? [y/N] ' "$*" "$install" >&2
            read -r answer || answer=
        fi
        case $answer in
        1 | y | Y | yes) ;;
        *)
            say "these system packages are missing: $*. As root, run this once (or set YES=1 to have it done with sudo):"
            echo "    $asked" >&2
            exit 2
            ;;
        esac
        if ! have sudo; then
            say "there is no sudo here. As root, run this once:"
            echo "    $asked" >&2
            exit 2
        fi
    fi
    say "installing system packages: $*"
    # The words are meant to split: each is one argument. Children do not inherit the lock.
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive $update -qq >&2 9>&-
    if [ -n "$quiet" ]; then
        $as_root mkdir -p "$quiet"
        echo "$NO_CLUSTER" | $as_root tee "$quiet/tests.conf" >/dev/null
    fi
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive $install -qq >.make/apt.log 2>&1 9>&- || {
        tail -n 20 .make/apt.log >&2
        exit 100
    }
}

make_environment() {
    if ! { .venv/bin/python -c 'import pip' && [ "$(cat .venv/made-by)" = "$MADE_BY" ]; } >/dev/null 2>&1; then
        say "making .venv with $("$PYTHON" --version)"
        "$PYTHON" -m venv --clear .venv
        echo "$MADE_BY" >.venv/made-by
    fi
    say "installing the packages of $LOCK"
    pip="-m pip --disable-pip-version-check --no-input -qq"
    # shellcheck disable=SC2086
    .venv/bin/python $pip install --require-hashes --no-deps -r "$LOCK"
    # shellcheck disable=SC2086
    .venv/bin/python $pip install --no-build-isolation --no-deps --editable .
}

# The environment is made again from nothing when the interpreter or the place of the checkout changed.
PYTHON=$(find_python)
KEY=$(key)
MADE_BY="$("$PYTHON" -c 'import sys; print(sys.base_prefix, sys.version)' | tr '\n' ' ')$ROOT"

if environment_ready && [ -z "$(missing_packages)" ]; then
    exit 0
fi

mkdir -p .make
exec 9>.make/setup.lock
if have flock && ! flock -n 9; then
    say "another set-up is running here; waiting for it"
    flock 9
fi

packages=$(missing_packages | tr '\n' ' ')
if [ -n "$packages" ]; then
    # shellcheck disable=SC2086
    install_packages $packages
fi
if ! environment_ready; then
    make_environment
    echo "$KEY" >".venv/ready-$KIND"
    say "ready"
fi
