#!/bin/sh
# Proves that `make demo` and `make test` need nothing but a bare Debian: sh scripts/try-fresh.sh FOLDER [SUITE]
#
# Makes a bare Debian in FOLDER (debootstrap: minbase, python3, make, ca-certificates; kept there for the next
# trial), copies the committed state of this checkout into copies of it, and runs the targets inside:
#   as root           everything is installed without a question;
#   as a plain user   first the one command to run is shown and nothing else happens, then root runs that very
#                     command, then the targets run.
# TARGETS="setup-core setup-dev" tries other targets than "demo test". USERS="root" or "user" runs one trial only.
# Published conformance data in a folder `shared` beside this checkout is copied along, so that its tests run.
# Needs root, Linux, debootstrap and the network. Name and network settings of this machine (resolver, certificates,
# apt and pip settings) are copied into the trial when it runs. Exit: 0 all went well, 1 something did not, 2 usage.
set -eu

FOLDER=${1:-}
SUITE=${2:-stable}
TARGETS=${TARGETS:-demo test}
USERS=${USERS:-root user}
if [ -z "$FOLDER" ] || [ "$(id -u)" != 0 ]; then
    echo "usage, as root: sh scripts/try-fresh.sh FOLDER [SUITE]" >&2
    exit 2
fi
for program in debootstrap unshare pivot_root git; do
    command -v $program >/dev/null || {
        echo "$program is needed: apt-get install debootstrap util-linux git" >&2
        exit 2
    }
done
cd "$(dirname "$0")/.."
mkdir -p "$FOLDER"
FOLDER=$(cd "$FOLDER" && pwd -P)
BASE=$FOLDER/base-$SUITE
WHERE="" # set for each trial: root's sandbox could not pass a home that is closed to others

say() { echo "fresh: $*"; }

make_base() {
    [ -e "$BASE.done" ] && return
    rm -rf "$BASE"
    say "making a bare Debian ($SUITE)"
    debootstrap --variant=minbase --include=python3,make,ca-certificates "$SUITE" "$BASE" >"$BASE.log" 2>&1 || {
        tail -n 20 "$BASE.log"
        exit 1
    }
    rm -rf "$BASE"/var/cache/apt/archives/*.deb "$BASE"/var/lib/apt/lists/*
    touch "$BASE.done"
}

make_trial() {
    rm -rf "$TRIAL"
    cp -a "$BASE" "$TRIAL"
    for name in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
        if [ -e "$name" ]; then cp -L "$name" "$TRIAL$name"; fi
    done
    apt-config dump | grep '^Acquire::' >"$TRIAL/etc/apt/apt.conf.d/99trial" || :
    chroot "$TRIAL" useradd --create-home --shell /bin/sh tester
    git clone --quiet --no-hardlinks . "$TRIAL$WHERE"
    if [ -d ../shared/conformance ]; then cp -r ../shared "$TRIAL$(dirname "$WHERE")/shared"; fi
    chroot "$TRIAL" chown -R "$1:$1" "$WHERE"
}

# Runs a shell line inside the trial as the user named. The trial becomes the root of a mount namespace of its own
# (a plain chroot could not make user namespaces), with its own processes and this machine's network.
inside() {
    user=$1
    shift
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child sh -eu -c '
        trial=$1 where=$2 user=$3 line=$4
        mount --bind "$trial" "$trial"
        mount --rbind /dev "$trial/dev"
        mount --rbind /sys "$trial/sys"
        mount -t proc proc "$trial/proc"
        mkdir -p "$trial/.outside"
        cd "$trial"
        pivot_root . .outside
        exec chroot . /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
            /bin/sh -eu -c "umount -l /.outside; exec su \"\$1\" -c \"\$2\"" sh "$user" "cd \"$where\" && $line"
    ' sh "$TRIAL" "$WHERE" "$user" "$*" </dev/null
}

targets() {
    for target in $TARGETS; do
        log=$FOLDER/$1-$target.log
        begin=$(date +%s)
        status=0
        inside "$1" "make $target" >"$log" 2>&1 || status=$?
        command=$(sed -n 's/^    \(apt-get .*\)$/\1/p' "$log")
        if [ $status = 2 ] && [ "$1" != root ] && [ -n "$command" ]; then
            # What only this target needs is asked for once, too.
            say "$1: make $target asks for: $command"
            inside root "$command" >>"$FOLDER/$1-asked.log" 2>&1
            status=0
            inside "$1" "make $target" >"$log" 2>&1 || status=$?
        fi
        say "$1: make $target: exit $status after $(($(date +%s) - begin)) s; its last line: $(tail -n 1 "$log")"
        [ $status = 0 ] || failed=1
    done
}

make_base
failed=0
for user in $USERS; do
    TRIAL=$FOLDER/trial-$user
    case $user in
    root)
        WHERE="/root/a check out"
        make_trial root
        targets root
        ;;
    user)
        WHERE="/home/tester/a check out"
        make_trial tester
        first=${TARGETS%% *}
        status=0
        said=$(inside tester "make $first" 2>&1) || status=$?
        command=$(echo "$said" | sed -n 's/^    \(apt-get .*\)$/\1/p')
        say "tester: make $first, with programs missing: exit $status; it asks for: $command"
        if [ $status = 0 ] || [ "$(echo "$command" | wc -l)" != 1 ] || [ -z "$command" ]; then
            echo "$said"
            failed=1
            continue
        fi
        inside root "$command" >"$FOLDER/tester-asked.log" 2>&1
        targets tester
        ;;
    esac
done
exit $failed
