#!/bin/sh
# Run by mmdebstrap inside its namespace, when the packages are in place: customize.sh ROOT FILES IMAGE.
# FILES holds what perfbisect made (init, sshd_config, keys); IMAGE is an empty file that becomes the disk.
set -eu
files=$2 image=$3

# The tree without what mmdebstrap mounted into it (/dev, /proc, /sys): a bind mount does not carry those along.
root=$(mktemp -d)
mount --bind "$1" "$root"
trap 'umount "$root"; rmdir "$root"' EXIT

install -m 755 "$files/init" "$root/sbin/perfbisect-init"
rm -f "$root"/etc/ssh/ssh_host_*
install -m 644 "$files/sshd_config" "$root/etc/ssh/sshd_config"
install -m 600 "$files/host_key" "$root/etc/ssh/ssh_host_ed25519_key"
install -m 644 "$files/client_key.pub" "$root/etc/ssh/authorized_keys"
# A locked root ('*') may still log in with a key when PAM is out of the way; '!' may not.
sed -i 's/^root:[^:]*:/root:*:/' "$root/etc/shadow"
printf '127.0.0.1 localhost guest\n' > "$root/etc/hosts"
printf 'guest\n' > "$root/etc/hostname"
: > "$root/etc/machine-id"
rm -f "$root/etc/resolv.conf" "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*

# Found nowhere below: everything that is written at run time is a tmpfs.
rm -rf "$root"/var/* "$root"/run/* "$root"/tmp/* "$root"/root/*
rm -rf "$root"/usr/share/doc "$root"/usr/share/man "$root"/usr/share/info "$root"/usr/share/locale
rm -rf "$root"/boot "$root"/media "$root"/home "$root"/srv
mkdir -p "$root/work" "$root/run" "$root/tmp" "$root/root" "$root/var" "$root/proc" "$root/sys" "$root/dev"

# Fixed ids: the same tree gives the same disk. No journal, no reserve, 10% free for nobody: it is read-only.
size=$(du -s --block-size=1M "$root" | cut -f1)
truncate -s "$((size + size / 5 + 16))M" "$image"
mke2fs -q -F -t ext2 -b 4096 -m 0 -U 70657266-6269-7365-6374-000000000001 \
    -E "root_owner=0:0,hash_seed=70657266-6269-7365-6374-000000000002,lazy_itable_init=0" \
    -O none,filetype,sparse_super,large_file,dir_index -d "$root" "$image"
# For the time before devtmpfs the kernel opens /dev/console for init. Written into the finished disk, since
# nobody may make a device in a namespace of an ordinary user. debugfs exits with 0 whatever happens.
printf 'cd /dev\nrm console\nmknod console c 5 1\nset_inode_field console mode 020600\n' | debugfs -w -f - "$image"
debugfs -R 'stat /dev/console' "$image" | grep -q 'character special.*Mode: *0600'
