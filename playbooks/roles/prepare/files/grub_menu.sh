#!/bin/sh
# Has GRUB's menu obey a one-shot choice, where it does not yet. The default entry stays what it is: GRUB 2.00 and later write
# that into every menu, whatever GRUB_DEFAULT says.
#
#   grub_menu.sh check           says what it would do
#   grub_menu.sh write           does it
set -eu
root=${PB_ROOT:-} # as in roles/boot/files/boot.sh
[ -n "$root" ] || PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin
find_tool() { # name behind 'grub'; sets $tool
	for tool in "grub$1" "grub2$1"; do ! command -v "$tool" >/dev/null || return 0; done
	echo "neither grub$1 nor grub2$1 is on the machine: install its GRUB tools" >&2
	exit 1
}
# As grub_folder in roles/boot/files/boot.sh.
efi_menu() {
	[ -d "$root/sys/firmware/efi" ] && [ -L "$root/boot/grub2/grubenv" ] || return 0
	folder=$(readlink -f "$root/boot/grub2/grubenv")
	folder=${folder%/*}
	if grep -qs '^### BEGIN /etc/grub.d/' "$folder/grub.cfg"; then echo "$folder/grub.cfg"; fi
}
obeys() { grep -q next_entry "$menu" && grep -q custom.cfg "$menu"; }

find_tool -reboot
for menu in "$(efi_menu)" "$root/boot/grub2/grub.cfg" "$root/boot/grub/grub.cfg"; do
	[ -e "$menu" ] || continue
	if obeys; then
		echo "$menu obeys a one-shot choice already"
		exit 0
	fi
	find_tool -mkconfig
	echo "$menu is written anew by $tool"
	[ "$1" != check ] || exit 0
	"$tool" -o "$menu"
	obeys || {
		echo "$menu still has no next_entry, or does not read custom.cfg: look at /etc/grub.d/00_header and 41_custom" >&2
		exit 1
	}
	exit 0
done
echo "there is no grub.cfg in /boot/grub2 or /boot/grub: GRUB does not boot this machine" >&2
exit 1
