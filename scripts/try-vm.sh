#!/bin/sh
# Tries what holds a graded command on a system of its own: sh scripts/try-vm.sh FOLDER [SUITE]
#
# Control groups of version 2, systemd's scopes and the kernel's own settings cannot be tried where the machine has
# others. This makes a Debian with systemd in FOLDER (debootstrap; kept there for the next trial), copies the committed
# state of this checkout into it, sets it up as an ordinary user, and boots it with qemu (by emulation, in half an hour;
# ACCEL=kvm is quicker). Within, scripts/within-vm.sh runs as root and as the user, with and without a systemd session,
# then under kernel settings that forbid sandboxes or tracers. Each line it prints says what was expected and what came;
# FOLDER/console.log shows how far it is.
#
# Needs root, Linux, debootstrap, qemu-system-x86, mke2fs and the network (none inside the machine that is booted).
# Exit: 0 everything came as expected, 1 something did not, 2 usage.
set -eu

FOLDER=${1:-}
SUITE=${2:-trixie}
ACCEL=${ACCEL:-tcg} # by emulation: a few minutes, and right wherever it runs; kvm is quicker where it can be had
if [ -z "$FOLDER" ] || [ "$(id -u)" != 0 ]; then
    echo "usage, as root: sh scripts/try-vm.sh FOLDER [SUITE]" >&2
    exit 2
fi
for program in debootstrap qemu-system-x86_64 mke2fs git; do
    command -v $program >/dev/null || {
        echo "$program is needed: apt-get install debootstrap qemu-system-x86 e2fsprogs git" >&2
        exit 2
    }
done
cd "$(dirname "$0")/.."
mkdir -p "$FOLDER"
FOLDER=$(cd "$FOLDER" && pwd -P)
BASE=$FOLDER/base-$SUITE
ROOT=$FOLDER/root
PACKAGES=systemd,systemd-sysv,libpam-systemd,dbus,dbus-user-session,linux-image-cloud-amd64,initramfs-tools,python3
PACKAGES=$PACKAGES,python3-venv,make,git,bubblewrap,strace,procps,ca-certificates

say() { echo "vm: $*"; }

if [ ! -e "$BASE.done" ]; then
    rm -rf "$BASE"
    say "making a Debian ($SUITE) that boots"
    debootstrap --variant=minbase --include="$PACKAGES" "$SUITE" "$BASE" >"$BASE.log" 2>&1 || {
        tail -n 20 "$BASE.log"
        exit 1
    }
    rm -rf "$BASE"/var/cache/apt/archives/*.deb "$BASE"/var/lib/apt/lists/*
    chroot "$BASE" useradd --create-home --shell /bin/sh tester
    touch "$BASE.done"
fi

say "setting up"
rm -rf "$ROOT"
cp -a "$BASE" "$ROOT"
for name in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
    if [ -e "$name" ]; then cp -L "$name" "$ROOT$name"; fi
done
git clone --quiet --no-hardlinks . "$ROOT/srv/checkout"
chroot "$ROOT" chown -R tester:tester /srv/checkout
chroot "$ROOT" su tester -c "cd /srv/checkout && make setup-core" >"$FOLDER/setup.log" 2>&1 || {
    tail -n 20 "$FOLDER/setup.log"
    exit 1
}
cat >"$ROOT/etc/systemd/system/trial.service" <<'UNIT'
[Unit]
Description=The trial
After=systemd-logind.service dbus.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c "exec /bin/sh /srv/checkout/scripts/within-vm.sh >/dev/ttyS1 2>&1"
ExecStopPost=/bin/systemctl poweroff --force
[Install]
WantedBy=multi-user.target
UNIT
chroot "$ROOT" systemctl enable --quiet trial.service
rm -f "$FOLDER/disk.img"
mke2fs -q -t ext4 -d "$ROOT" "$FOLDER/disk.img" 4G
cp "$ROOT"/boot/vmlinuz-* "$FOLDER/vmlinuz"
cp "$ROOT"/boot/initrd.img-* "$FOLDER/initrd"

say "booting ($ACCEL)"
rm -f "$FOLDER/console.log" "$FOLDER/boot.log"
timeout --kill-after=10s 60m qemu-system-x86_64 \
    -machine "accel=$ACCEL" -cpu max -smp 2 -m 2048 -display none -monitor none -no-reboot -nic none \
    -kernel "$FOLDER/vmlinuz" -initrd "$FOLDER/initrd" \
    -append "root=/dev/vda rw console=ttyS0 quiet systemd.show_status=no" \
    -serial "file:$FOLDER/boot.log" -serial "file:$FOLDER/console.log" \
    -drive "file=$FOLDER/disk.img,format=raw,if=virtio,cache=unsafe" </dev/null || :
tr -d '\r' <"$FOLDER/console.log" >"$FOLDER/console.txt"
grep "^trial: " "$FOLDER/console.txt" || :
if ! grep -q "^trial: done" "$FOLDER/console.txt"; then
    say "the machine did not come to the end; see $FOLDER/console.txt"
    exit 1
fi
! grep -q "^trial: NOT" "$FOLDER/console.txt"
