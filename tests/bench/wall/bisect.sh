#!/bin/bash
# What people write for 'git bisect run': configure, make, boot, run, compare. Run in a kernel's tree.
#   OUT     output folder, kept from commit to commit;  CONFIG  'defconfig', or a file whose options are asked for
#   PROGRAM a static pipe-test, which is the guest's first process;  LIMIT  seconds, above which a commit is bad;
#           empty: print the number and end
# Exit codes are those that git bisect wants: 0 good, 1 bad, 125 cannot be tested.
set -u -o pipefail
mkdir -p "$OUT"
if [ "$CONFIG" = defconfig ]; then
    make -s O="$OUT" defconfig
else
    KCONFIG_ALLCONFIG=$CONFIG make -s O="$OUT" allnoconfig
fi >"$OUT/config.log" 2>&1 || exit 125
make -s O="$OUT" CC="ccache gcc" KBUILD_BUILD_TIMESTAMP=2026-01-01 -j"${JOBS:-2}" bzImage >"$OUT/make.log" 2>&1 || exit 125
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/root" "$work/root/dev"
cp "$PROGRAM" "$work/root/init"
mknod "$work/root/dev/console" c 5 1
(cd "$work/root" && find . | cpio --quiet -o -H newc) >"$work/initramfs"
# The first process ends, the kernel panics, and the emulator ends with it.
timeout 300 qemu-system-x86_64 -machine q35 -m 512 -cpu max -nodefaults -display none -no-reboot -serial stdio \
    -icount shift=0,sleep=off,align=off -seed 1 -rtc base=2020-01-01,clock=vm \
    -kernel "$OUT/arch/x86/boot/bzImage" -initrd "$work/initramfs" -append \
    "console=ttyS0 panic=-1 reboot=t no_timer_check tsc_early_khz=1000000 tsc=reliable nolapic_timer -- 20000" \
    </dev/null >"$work/console"
real=$(tr -d '\r' <"$work/console" | sed -n 's/^real[ =:]*\([0-9.]*\).*/\1/p' | head -n 1)
[ -n "$real" ] || exit 125
echo "$real"
[ -n "${LIMIT-}" ] || exit 0
! awk "BEGIN { exit !($real > $LIMIT) }"
