#!/bin/sh
# What scripts/try-vm.sh runs inside the machine that it boots, as root. Prints a line for each thing tried:
# "trial: as expected: ..." or "trial: NOT as expected: ...", and "trial: done" at the end.
set -u

AT=/srv/checkout
PY=$AT/.venv/bin/python
ID=$(id -u tester)
BUS="XDG_RUNTIME_DIR=/run/user/$ID DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$ID/bus"
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8

say() { echo "trial: $*"; }

# expect WHAT PATTERN TEXT: whether the text holds the pattern (an extended regular expression).
expect() {
    if printf '%s\n' "$3" | grep -Eq -- "$2"; then
        say "as expected: $1"
    else
        say "NOT as expected: $1: no line is like $2"
        printf '%s\n' "$3" | tail -n 12
    fi
}

as_root() { sh -c "cd $AT && $1" 2>&1; }
as_user() { su tester -c "cd $AT && $BUS $1" 2>&1; }
as_user_alone() { su tester -c "cd $AT && env -u XDG_RUNTIME_DIR -u DBUS_SESSION_BUS_ADDRESS $1" 2>&1; }

# limits WHO WORD: the same four programs within small limits, and by what the limit on memory was enforced.
limits() {
    for who in "$1"; do
        scratch=$(mktemp -d /tmp/limits-XXXXXX)
        chmod 777 "$scratch"
        told=$($who "$PY tests/observer/drive_limits.py $scratch")
        printf '%s\n' "$told"
        expect "$who: what keeps within its limits passes" '"below", null, 0' "$told"
        # Where each process has a limit of its own, the program is refused the memory and ends by itself.
        expect "$who: memory is cut ($2)" "\"memory\", (\"out_of_memory\", -9|null, 1), .*$2" "$told"
        expect "$who: forks are cut" '"forks", "(too_many_processes|out_of_memory)"' "$told"
        expect "$who: the first process is out of reach" '"first", null, [^0]' "$told"
        rm -rf "$scratch"
    done
    left=$(ps -eo args= | grep -E "bytearray|os[.]fork" | grep -v grep)
    expect "$1: nothing is left running" '^none$' "${left:-none}"
    left=$(find /sys/fs/cgroup -type d -name 'troth-*')
    expect "$1: no group is left" '^none$' "${left:-none}"
}

expect "control groups are of version 2" '^cgroup2fs$' "$(stat -f -c %T /sys/fs/cgroup)"
loginctl enable-linger tester
for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ -S "/run/user/$ID/bus" ] && break
    sleep 1
done
expect "the user has a session bus" '^yes$' "$([ -S "/run/user/$ID/bus" ] && echo yes)"

for who in as_root as_user as_user_alone; do
    expect "$who: doctor finds nothing missing" "^Observing and grading: ready" "$($who "$PY -m troth doctor")"
    expect "$who: the demo holds" '^status 0$' "$($who "$PY -m troth demo; echo status \$?")"
done
limits as_root "control group \\(version 2\\)"
limits as_user "systemd scope"
limits as_user_alone "RLIMIT_DATA"

# setting NAME VALUE PATTERN: with it, what doctor says to the user, and that a run refuses with the way out.
setting() {
    before=$(sysctl -n "$1" 2>/dev/null) || {
        say "as expected: this kernel has no $1"
        return
    }
    sysctl -q -w "$1=$2"
    told=$(as_user "$PY -m troth doctor; echo status \$?")
    printf '%s\n' "$told"
    expect "$1=$2: doctor names it" "$1" "$told"
    expect "$1=$2: doctor says that observing does not work" '^status [^0]' "$told"
    told=$(as_user "$PY -m troth demo" | tr "\n" " ")
    expect "$1=$2: the demo refuses with the way out" "E_OBSERVER_MISSING.*Mend it with" "$told"
    sysctl -q -w "$1=$before" || say "as expected: $1 cannot be taken back before the next boot"
}

setting user.max_user_namespaces 0
setting kernel.unprivileged_userns_clone 0
setting kernel.apparmor_restrict_unprivileged_userns 1
setting kernel.yama.ptrace_scope 2
setting kernel.yama.ptrace_scope 3
say "done"
