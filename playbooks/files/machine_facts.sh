#!/bin/sh
# What a machine of the lab has, as lines NAME=VALUE on standard output. Changes nothing, needs no Python.
#
#   machine_facts.sh FOLDER TOOL...
#
# FOLDER: where workloads or builds go; its nearest folder that exists is looked at. TOOL: programs to look for.
# 'lab check' compares the values with what a trial needs; 'lab add' chooses the boot method by them.
set -u
root=${PB_ROOT:-} # tests have a machine's files in a folder
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# FOLDER's nearest ancestor that exists: free KiB, mount point, mount options.
place() {
	folder=$2
	while [ ! -d "$folder" ]; do folder=$(dirname "$folder"); done
	df -Pk "$folder" | {
		read -r _
		read -r _ _ _ free _ mount
		echo "$1.free_kib=$free"
		echo "$1.mount=$mount"
		while read -r _ at _ options _; do
			if [ "$at" = "$mount" ]; then echo "$1.options=$options"; fi
		done </proc/mounts
	}
}

text() {
	if [ -r "$2" ]; then
		IFS= read -r line <"$2" || [ -n "$line" ] || return 0
		echo "$1=$line"
	fi
}

case $1 in
"~"*) workdir=$HOME${1#"~"} ;;
*) workdir=$1 ;;
esac
shift
echo "uid=$(id -u)"
echo "release=$(uname -r)"
echo "arch=$(uname -m)"
text boot_id /proc/sys/kernel/random/boot_id
text cmdline /proc/cmdline
text clocksource /sys/devices/system/clocksource/clocksource0/current_clocksource
text kexec_disabled /proc/sys/kernel/kexec_load_disabled
text lockdown "$root/sys/kernel/security/lockdown"
secure=$root/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
[ -r "$secure" ] && [ "$(od -An -tu1 -j4 -N1 "$secure" | tr -d ' ')" = 1 ] && echo "secure_boot=on"
text bios /sys/class/dmi/id/bios_version
text machine /sys/class/dmi/id/product_name
[ -d /sys/firmware/efi ] && echo "firmware=uefi" || echo "firmware=bios"
[ -e /dev/watchdog ] && echo "watchdog=yes" || echo "watchdog=no"
[ -d /run/systemd/system ] && echo "init=systemd" || echo "init=other"
[ -d /boot/loader/entries ] || [ -d /efi/loader/entries ] || [ -d /boot/efi/loader/entries ] && echo "loader_entries=yes"
[ -e "/boot/vmlinuz-$(uname -r)" ] && echo "kernel_image=/boot/vmlinuz-$(uname -r)"
# Of Debian and Ubuntu; Fedora and RHEL; SUSE.
for image in "initrd.img-$(uname -r)" "initramfs-$(uname -r).img" "initrd-$(uname -r)"; do
	[ -e "$root/boot/$image" ] && echo "initrd=/boot/$image"
done
# As grub_folder in roles/boot/files/boot.sh.
written_menu() { grep -qs '^### BEGIN /etc/grub.d/' "$1"; }
menus="$root/boot/grub/grub.cfg $root/boot/grub2/grub.cfg"
if [ -d "$root/sys/firmware/efi" ] && [ -L "$root/boot/grub2/grubenv" ]; then
	efi=$(readlink -f "$root/boot/grub2/grubenv")
	if written_menu "${efi%/*}/grub.cfg"; then menus=${efi%/*}/grub.cfg; fi
fi
found=no
for menu in $menus; do
	if [ -r "$menu" ]; then
		found=yes
		echo "grub_menu=${menu#"$root"}"
		if grep -q next_entry "$menu" && grep -q custom.cfg "$menu"; then echo "grub_once=yes"; fi
	fi
done
for menu in "$root"/boot/efi/EFI/*/grub.cfg; do
	if [ $found = no ] && written_menu "$menu"; then echo "grub_apart=${menu#"$root"}"; fi
done
for tool; do
	if command -v "$tool" >/dev/null; then echo "tool.$tool=yes"; fi
done
place boot /boot
place work "$workdir"
echo "now=$(date +%s)"
