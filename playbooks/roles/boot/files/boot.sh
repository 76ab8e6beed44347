#!/bin/sh
# All that perfbisect does on a machine to boot a kernel there once. It comes with each request; the machine needs a shell,
# tar, gzip, sha256sum and the tools of its boot method, no Python.
#
#   boot.sh state                which kernel runs, which is the default, what of ours is here
#   boot.sh ask KEY KIB          like state; makes room for KIB. Ends with code 0 if the kernel KEY is here, whole; else 1
#   boot.sh boot METHOD KEY RELEASE CMDLINE MORE SECONDS
#                                prepares the kernel KEY (files beside this script are a new one) and boots it once. CMDLINE:
#                                empty for that of the default kernel; MORE is added. SECONDS: of the watchdog, 0 for none.
#                                METHOD: kexec, grub, systemd-boot; pxe prepares, and whoever serves it calls restart
#   boot.sh crashes KNOWN...     prints the records of crashes that are here, but for those KNOWN, and removes what it printed
#   boot.sh up                   the kernel under test runs: nothing may start it again, no watchdog may end it
#   boot.sh restart [armed]      boots the default kernel, through the firmware; armed: what is served, and a watchdog stays
#   boot.sh forget               takes away everything of ours; refused while a kernel under test runs
#
# Answers are lines NAME=VALUE. What this machine lacks is two lines refused=... and cure=..., and code 65; doubt=kernel
# beside them means that the kernel may be at fault, which another kernel shows.
# What is ours: /var/lib/perfbisect (kernels, the note of the default kernel), /boot/*-perfbisect, a block in GRUB's
# custom.cfg, an entry of systemd-boot, folders of /lib/modules with the file .perfbisect in them.
set -u
umask 022
root=${PB_ROOT:-}                                   # tests have a machine in a folder, and its tools,
[ -n "$root" ] || PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin # for those of this one would reboot it
home=$root/var/lib/perfbisect
kernels=$home/kernels
note=$home/default-kernel
modules=$root/lib/modules
menu_id=perfbisect
# Without sort-key and a default in loader.conf, systemd-boot boots the entry with the last name: digits are behind letters there.
loader_entry=a-perfbisect.conf
keep=3 # kernels that stay for the next boot: a comparison goes back and forth between two or three

refuse() { # what, cure
    echo "refused=$1"
    echo "cure=$2"
    exit 65
}
# What is here of other kernels goes: the one that shows whose fault it is takes each step anew.
refuse_kernel() { # what, cure
    drop_all_but 0
    [ -z "$(running_key)" ] || rm -rf "${kernels:?}/$(running_key)"
    rm -rf "$modules/.perfbisect-new" # half of what did not fit: its disk would stay full
    echo doubt=kernel
    refuse "$@"
}
have() { command -v "$1" >/dev/null 2>&1; }
need() { have "$1" || refuse "$1 is not on the machine" "install it there (package $2), or choose another perfbisect_boot_method"; }
tell() { sed -n "s/^$1=//p" "$2" 2>/dev/null | head -n 1; } # value of a line NAME=VALUE in a file
last_words() { tr -s '\n' ' ' | tail -c 300; }

# --- which kernel runs, and which is the machine's own

# Words with a dot are for modules: no kernel hands them to init, so that programs under test see no difference.
running_key() { sed -n 's/.*perfbisect\.kernel=\([0-9a-f]*\).*/\1/p' "$root/proc/cmdline"; }
build_id() {
    od -An -v -tx1 "$root/sys/kernel/notes" 2>/dev/null | tr -d ' \n' |
        sed -n 's/.*040000001400000003000000474e5500\([0-9a-f]\{40\}\).*/\1/p'
}
facts() {
    echo "release=$(cat "$root/proc/sys/kernel/osrelease")"
    echo "build_id=$(build_id)"
    echo "boot_id=$(cat "$root/proc/sys/kernel/random/boot_id")"
    echo "cmdline=$(cat "$root/proc/cmdline")"
}
# Whoever comes next, after a kill or a power cut, reads here what is to be restored. A machine that starts without us
# runs its default kernel: that is what the note says of the last time.
note_default() {
    [ -z "$(running_key)" ] || return 0
    mkdir -p "$home" && facts >"$note.new" && mv "$note.new" "$note" ||
        refuse "cannot write $note" "make room on the machine, and mount its disk for writing"
}
ours_in_modules() { for mark in "$modules"/*/.perfbisect; do [ ! -e "$mark" ] || echo "${mark%/.perfbisect}"; done; }
state() {
    facts
    echo "ours=$(running_key)"
    for name in release build_id boot_id; do echo "default_$name=$(tell $name "$note")"; done
    echo "firmware=$(if [ -d "$root/sys/firmware/efi" ]; then echo uefi; else echo bios; fi)"
    echo "secure_boot=$(if secure_boot; then echo on; else echo off; fi)"
    echo "left=$(leftovers | tr '\n' ' ')"
}
leftovers() {
    for path in "$home" "$root/boot/vmlinuz-perfbisect" "$root/boot/initrd-perfbisect" $(ours_in_modules); do
        [ ! -e "$path" ] || echo "${path#"$root"}"
    done
    custom=$(grub_folder)/custom.cfg
    if grep -qs '^# perfbisect: begin' "$custom"; then echo "${custom#"$root"}"; fi
    if have bootctl && [ -n "$(entry_folder)" ] && [ -e "$(entry_folder)/loader/entries/$loader_entry" ]; then
        echo "loader/entries/$loader_entry"
    fi
}
secure_boot() {
    state_file=$root/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
    [ -e "$state_file" ] && [ "$(od -An -tu1 -j4 -N1 "$state_file" | tr -d ' ')" = 1 ]
}
refuse_secure_boot() {
    ! secure_boot || refuse "Secure Boot is on: the firmware starts no kernel that is not signed" \
        "switch Secure Boot off in the machine's firmware"
}

# --- the kernel's files

drop_kernel() { # key
    for folder in $(ours_in_modules); do
        [ "$(cat "$folder/.perfbisect")" != "$1" ] || [ "$1" = "$(running_key)" ] || rm -rf "$folder"
    done
    rm -rf "${kernels:?}/$1"
}
drop_all_but() { # how many stay, beside the one that runs
    ls -t "$kernels" 2>/dev/null | grep -vx "$(running_key)" | tail -n +$(($1 + 1)) | while read -r key; do drop_kernel "$key"; done
}
# The modules' archive was verified when it came: it is large.
whole() { # key
    (cd "$kernels/$1" 2>/dev/null && grep ' image$' sums | sha256sum -c >/dev/null 2>&1)
}
make_room() { # KiB
    mkdir -p "$kernels" || refuse "cannot write $home" "make room on the machine, and mount its disk for writing"
    drop_all_but $((keep - 1))
    [ "$(free_kib)" -ge "$1" ] || drop_all_but 0
    [ "$(free_kib)" -ge "$1" ] || refuse_kernel "the machine has $(($(free_kib) >> 10)) MiB free at /var/lib, the kernel needs $(($1 >> 10))" \
        "make room on the machine's disk"
}
free_kib() { df -Pk "$kernels" | awk 'END { print $4 }'; }
take_new() { # key: the files that came with this request
    [ -e image ] || return 0
    drop_kernel "$1"
    sha256sum -c sums >/dev/null 2>&1 || refuse "the kernel's files did not arrive whole" "look at the machine's disk"
    mkdir -p "$kernels" && rm -rf "$kernels/new" && mkdir "$kernels/new" || refuse "cannot write $kernels" "make room on the machine's disk"
    for file in image sums config modules.tar.gz; do [ ! -e $file ] || mv $file "$kernels/new/"; done
    mv "$kernels/new" "$kernels/$1"
}
# The archive has 'lib' as a folder, and /lib is a link on most machines: it is unpacked elsewhere and moved.
install_modules() { # key, release
    folder=$modules/$2 staging=$modules/.perfbisect-new
    [ "$(cat "$folder/.perfbisect" 2>/dev/null)" != "$1" ] || return 0
    rm -rf "$staging"
    mkdir -p "$staging"
    gzip -dc "$kernels/$1/modules.tar.gz" | tar -C "$staging" -xf - ||
        refuse_kernel "the modules of $2 cannot be unpacked below /lib/modules" "make room on the machine's disk"
    [ -d "$staging/lib/modules/$2" ] || refuse_kernel "the archive of modules has none for $2" "build the kernel anew"
    if [ -d "$folder" ] && [ ! -e "$folder/.perfbisect" ]; then
        # The machine's own. The same package on both sides is fine.
        same_modules "$staging/lib/modules/$2/kernel" "$folder/kernel" "$staging/own" || {
            rm -rf "$staging"
            refuse_kernel "$folder is the machine's own, and other modules than those of the kernel under test" \
                "build it with a CONFIG_LOCALVERSION of its own, or remove that package from the machine"
        }
    else
        echo "$1" >"$staging/lib/modules/$2/.perfbisect"
        rm -rf "$folder"
        mv "$staging/lib/modules/$2" "$folder"
    fi
    rm -rf "$staging"
}
# Those that came are as they are loaded; a distribution's own are compressed (Fedora and RHEL by xz, Ubuntu and SUSE by zstd).
same_modules() { # theirs, the machine's own, a folder for these as they are loaded
    ! diff -rq "$1" "$2" >/dev/null 2>&1 || return 0
    cp -r "$2" "$3" && find "$3" -name '*.ko.gz' -exec gzip -d {} + && find "$3" -name '*.ko.xz' -exec xz -d {} + &&
        find "$3" -name '*.ko.zst' -exec zstd -d -q --rm {} + && diff -rq "$1" "$3"
} >/dev/null 2>&1
# Names, as modules have them, of the root file system and of the drivers from its partition up to the bus.
root_drivers() {
    awk '$2 == "/" && $1 != "rootfs" { type = $3 } END { print type }' "$root/proc/mounts"
    device=$(awk '$5 == "/" { place = $3 } END { print place }' "$root/proc/self/mountinfo")
    place=$(readlink -f "$root/sys/dev/block/$device")
    case $place in *dm-* | *md[0-9]* | "") echo several ;; esac
    while [ -n "$place" ] && [ "$place" != "$root/sys" ]; do
        for link in "$place/driver/module" "$place/driver"; do
            [ ! -e "$link" ] || { basename "$(readlink -f "$link")"; break; }
        done
        place=${place%/*}
    done | sed 's/^sd$/sd_mod/; /^pcieport$/d'
}
# An initramfs takes seconds on a fast machine, minutes on an emulated one. A driver that is not known to be built in may
# be a module.
needs_initrd() { # release
    built_in=$modules/$1/modules.builtin
    for name in $(root_drivers | tr - _); do
        tr - _ 2>/dev/null <"$built_in" | grep -q "/$name\.ko$" || return 0
    done
    return 1
}
# By the machine's own tools: they alone know how its root is put together (LVM, RAID, encryption, names).
make_initrd() { # key, release
    initrd=$kernels/$1/initrd config=$root/boot/config-$2 lent=
    [ ! -e "$initrd" ] || return 0
    # initramfs-tools reads there which compression the kernel can unpack.
    if [ -e "$kernels/$1/config" ] && [ ! -e "$config" ]; then
        lent=$config
        cp "$kernels/$1/config" "$config"
    fi
    if have mkinitramfs; then
        made=$(mkinitramfs -o "$initrd.new" "$2" 2>&1)
    elif have dracut; then
        made=$(dracut --force --kver "$2" "$initrd.new" 2>&1)
    elif have mkinitcpio; then
        made=$(mkinitcpio -k "$2" -g "$initrd.new" 2>&1)
    else
        made=none
        false
    fi
    code=$?
    [ -z "$lent" ] || rm -f "$lent"
    if [ "$made" = none ]; then
        refuse "the kernel has modules, and the machine no tool that makes an initramfs" \
            "install initramfs-tools or dracut there, or take a recipe with its drivers built in (NAME+bare-metal)"
    fi
    if [ $code != 0 ] || [ ! -s "$initrd.new" ]; then
        rm -f "$initrd.new"
        refuse_kernel "the initramfs of $2 was not made: $(echo "$made" | last_words)" "try it on the machine: mkinitramfs or dracut, for $2"
    fi
    mv "$initrd.new" "$initrd"
}

# --- the command line

# The boot loader's own words, and those of another kernel, do not belong to the kernel under test. Nor does memory for a kernel
# that dumps a crash: the services for that would make an initramfs in each boot, and an oops would go there without a panic.
base_cmdline() { # CMDLINE
    line=$1
    if [ -z "$line" ]; then
        if [ -n "$(running_key)" ]; then line=$(tell cmdline "$note"); fi
        [ -n "$line" ] || line=$(cat "$root/proc/cmdline")
        line=$(echo "$line" | sed -E 's/(^| )(BOOT_IMAGE|initrd|panic|oops|crashkernel|perfbisect\.kernel)=[^ ]*//g; s/^ *//')
    fi
    echo "$line"
}
compose_cmdline() { # key, base, MORE; $initrd
    # panic: gives the machine back; ten seconds leave time for the console to drain. oops: as guests have it. An initramfs
    # of dracut that finds no root would open a shell instead, for ever; that of initramfs-tools reads panic=.
    by_dracut=
    [ -z "$initrd" ] || have mkinitramfs || ! have dracut || by_dracut=' rd.shell=0 rd.emergency=reboot'
    echo "$2 panic=10 oops=panic$by_dracut perfbisect.kernel=$1${3:+ $3}"
}
# UUID= and LABEL= are read by an initramfs; the kernel itself knows PARTUUID= and names of devices. Changes $line.
name_root_for_kernel() {
    spec=$(echo "$line" | tr ' ' '\n' | sed -n 's/^root=//p' | tail -n 1)
    device=
    case $spec in
        UUID=* | LABEL=*) device=$(blkid -l -o device -t "$(echo "$spec" | tr -d '"')" 2>/dev/null) ;;
        /dev/disk/* | /dev/mapper/*) device=$(readlink -f "$spec") ;;
        *) return 0 ;;
    esac
    part=$(blkid -o value -s PARTUUID "${device:-none}" 2>/dev/null)
    [ -n "$part" ] ||
        refuse_kernel "the root file system is $spec, which a kernel without initramfs does not find" \
            "set perfbisect_cmdline with root=PARTUUID=... or root=/dev/..., or take a recipe with modules"
    line=$(echo "$line" | sed "s|root=$spec|root=PARTUUID=$part|")
}

# --- the watchdog: for the time of the boot, where it survives the jump and the kernel under test can disarm it

arm_watchdog() { # key, seconds
    dog=$root/sys/class/watchdog/watchdog0
    if [ -e "$dog" ]; then
        driver=$(basename "$(readlink -f "$dog/device/driver/module" || readlink -f "$dog/device/driver")")
        # Some drivers name no device (i6300esb of Linux 6.1): they are known by what they call themselves.
        [ -n "$driver" ] || case "$(cat "$dog/identity" 2>/dev/null)" in
            "i6300ESB timer") driver=i6300esb ;;
            iTCO_wdt) driver=iTCO_wdt ;;
            IPMI) driver=ipmi_watchdog ;;
            HPE*) driver=hpwdt ;;
            "SP5100 TCO timer") driver=sp5100_tco ;;
        esac
    elif [ -e "$root/sys/module/ipmi_watchdog" ] && [ -e "$root/dev/watchdog" ]; then # older than that folder
        driver=ipmi_watchdog dog=$root/sys/module/ipmi_watchdog/parameters
    else
        echo none
        return
    fi
    case $driver in
        ipmi_watchdog) option=IPMI_WATCHDOG ;;
        iTCO_wdt) option=ITCO_WDT ;;
        i6300esb) option=I6300ESB_WDT ;;
        hpwdt) option=HP_WATCHDOG ;;
        sp5100_tco) option=SP5100_TCO ;;
        *) echo "off: ${driver:-it} is not known to survive the jump"; return ;;
    esac
    config=$kernels/$1/config
    # Most drivers stop it for a reboot, and kexec is one to them; the IPMI driver gives it two minutes more.
    if [ $driver != ipmi_watchdog ] && [ "$(cat "$root/sys/module/watchdog/parameters/stop_on_reboot" 2>/dev/null)" != 0 ]; then
        echo "off: $driver stops it when the machine goes down (watchdog.stop_on_reboot=0 for the default kernel keeps it)"
    elif ! grep -qs "^CONFIG_$option=[ym]" "$config"; then
        echo "off: the kernel under test has no $driver to disarm it"
    elif grep -qs '^CONFIG_WATCHDOG_NOWAYOUT=y' "$config" || grep -qs '[1Y]' "$dog/nowayout"; then
        echo "off: nowayout: what is armed cannot be disarmed"
    elif ! wdctl -s "$2" "$root/dev/watchdog" >/dev/null 2>&1; then
        echo "off: wdctl cannot set it, or another program has it"
    elif [ "$(cat "$dog/timeout" 2>/dev/null || echo 0)" -lt "$2" ]; then
        echo "off: $driver takes no $2 s"
    # Closed without the letter V it goes on.
    elif echo $driver >"$home/watchdog" && { echo perfbisect >"$root/dev/watchdog"; } 2>/dev/null; then
        echo "$2 s by $driver"
    else
        echo "off: another program has it"
    fi
}
# The last before the machine goes down: where something refuses before, no watchdog may reset the machine later.
arm() { [ "$seconds" = 0 ] || echo "watchdog=$(arm_watchdog "$key" "$seconds")"; }
disarm_watchdog() {
    [ -e "$home/watchdog" ] || return 0
    [ -e "$root/dev/watchdog" ] || modprobe -q "$(cat "$home/watchdog")"
    [ ! -e "$root/dev/watchdog" ] || { printf V >"$root/dev/watchdog"; } 2>/dev/null
    rm -f "$home/watchdog"
}

# --- what a kernel that crashed has left in the memory of the firmware, or in its own; systemd puts it away at boot

crash_records() { # the last first: of one crash, that is the order of its parts
    records=
    for file in "$root"/sys/fs/pstore/dmesg-* "$root"/var/lib/systemd/pstore/*/dmesg-* "$root"/var/lib/systemd/pstore/*/*/dmesg-*; do
        [ ! -f "$file" ] || records="${file#"$root"} $records"
    done
    echo "$records"
}
print_crashes() { # names that are known
    new=
    for name in $(crash_records); do
        case " $* " in *" $name "*) ;; *) new="$new $root$name" ;; esac
    done
    # The end of a crash comes last and says why. EFI has parts of 1 KiB, ten and more of one crash.
    [ -z "$new" ] || { cat $new | tail -c 524288 && rm -f $new; }
}

# --- the methods

# A second later and in the background, so that this connection ends well.
later() { nohup setsid sh -c "sleep 1; $1" >/dev/null 2>&1 </dev/null & }

boot_kexec() { # image, initrd or '', command line
    need kexec kexec-tools
    [ "$(cat "$root/proc/sys/kernel/kexec_load_disabled" 2>/dev/null)" != 1 ] ||
        refuse "the machine's kernel refuses kexec (kernel.kexec_load_disabled=1)" \
            "take that setting out of the machine's sysctl files and reboot it"
    said=$(kexec --load "$1" ${2:+"--initrd=$2"} "--command-line=$3" 2>&1) || {
        if grep -qs '\[\(integrity\|confidentiality\)\]' "$root/sys/kernel/security/lockdown"; then
            refuse "the machine's kernel is locked down and loads no kernel that is not signed" "switch Secure Boot off in its firmware"
        fi
        refuse_kernel "kexec cannot load the kernel: $(echo "$said" | last_words)" \
            "try it on the machine; perfbisect_boot_method: grub boots without kexec"
    }
    # systemd unmounts file systems first; without it they are at least written out.
    arm
    later 'systemctl kexec || { sync; kexec --exec; }'
}

# RHEL 7 and 8 and Fedora up to 33 have, on UEFI, the menu beside GRUB on the EFI partition, and /boot/grub2/grubenv is a link to
# the one there. Later ones, and images of clouds, have a stub there, which no mkconfig has written: it loads that of /boot/grub2.
written_menu() { grep -qs '^### BEGIN /etc/grub.d/' "$1"; } # file
grub_folder() {
    if [ -d "$root/sys/firmware/efi" ] && [ -L "$root/boot/grub2/grubenv" ]; then
        folder=$(readlink -f "$root/boot/grub2/grubenv")
        folder=${folder%/*}
        ! written_menu "$folder/grub.cfg" || [ "$folder" = "$root/boot/grub2" ] || { echo "$folder"; return; }
    fi
    for folder in "$root/boot/grub2" "$root/boot/grub"; do [ ! -e "$folder/grub.cfg" ] || { echo "$folder"; return; }; done
}
# The folder below EFI, in small letters, that the firmware took its boot loader from; nothing where it does not tell.
started_from() {
    vars=$root/sys/firmware/efi/efivars guid=8be4df61-93ca-11d2-aa0d-00e098032b8c
    number=$(od -An -v -tx1 -j4 -N2 "$vars/BootCurrent-$guid" 2>/dev/null | awk '{ print toupper($2 $1) }')
    [ ! -r "$vars/Boot$number-$guid" ] || tr -dc ' -~' <"$vars/Boot$number-$guid" | tr A-Z a-z | sed -n 's/.*\\efi\\\([^\]*\)\\.*/\1/p'
}
# What could not be seen from a boot: GRUB would read another choice than the one that is written, and start the default kernel.
check_grubenv() { # folder of the menu; needs $probe
    case $1 in
        "$root/boot/grub" | "$root/boot/grub2")
            env=$(readlink -f "$1/grubenv")
            [ ! -L "$1/grubenv" ] || [ "$($probe --target=fs_uuid "${env%/*}")" = "$($probe --target=fs_uuid "$1")" ] ||
                refuse "${1#"$root"}/grubenv is a link to ${env#"$root"}, on another file system, where GRUB does not follow it" \
                    "make a file of it (cp --remove-destination ${env#"$root"} ${1#"$root"}/grubenv), or set perfbisect_boot_method: kexec"
            ;;
        *)
            started=$(started_from)
            case $started in
                '' | boot | "$(echo "${1##*/}" | tr A-Z a-z)") ;;
                *) refuse "the firmware started the boot loader of EFI/$started, and /boot/grub2/grubenv is a link to ${1#"$root"}/grubenv" \
                    "have both name one of them (efibootmgr -v shows the first), or set perfbisect_boot_method: kexec" ;;
            esac
            ;;
    esac
}
find_grub_tool() { # name behind 'grub'; sets $tool
    for tool in "grub$1" "grub2$1"; do ! have "$tool" || return 0; done
    refuse "neither grub$1 nor grub2$1 is on the machine" "install its GRUB tools (Debian: grub2-common), or choose another perfbisect_boot_method"
}
without_our_block() { # file
    [ ! -e "$1" ] || sed '/^# perfbisect: begin/,/^# perfbisect: end/d' "$1"
}
# GRUB reads its menu as a script: memmap=4G$4G would lose its '$4G', and bad memory would be used. Inside of
# double quotes a backslash is one before few characters (GRUB's manual, 'Quoting').
in_grub_words() { # command line
    printf '%s\n' "$1" | awk '{
        quoted = 0
        for (i = 1; i <= length($0); i++) {
            c = substr($0, i, 1)
            if (c == "\"") quoted = !quoted
            else if (index(quoted ? "$\\" : "{}|&$;<>#\047\\", c)) printf "%s", "\\"
            printf "%s", c
        }
        print ""
    }'
}
boot_grub() { # image, initrd or '', command line
    folder=$(grub_folder)
    if [ -z "$folder" ]; then
        for menu in "$root"/boot/efi/EFI/*/grub.cfg; do
            ! written_menu "$menu" ||
                refuse "GRUB's menu is ${menu#"$root"}, and /boot/grub2/grubenv is no link to the grubenv there, where an entry would be chosen" \
                    "make it that link, as the package of GRUB for UEFI does, or set perfbisect_boot_method: kexec"
        done
        refuse "there is no grub.cfg in /boot/grub or /boot/grub2" "choose another perfbisect_boot_method: GRUB does not boot this machine"
    fi
    find_grub_tool -mkrelpath && relative=$tool
    find_grub_tool -probe && probe=$tool
    find_grub_tool -reboot && choose=$tool
    grep -q custom.cfg "$folder/grub.cfg" ||
        refuse "$folder/grub.cfg does not read custom.cfg" "run update-grub (grub2-mkconfig) on the machine, with /etc/grub.d/41_custom"
    grep -q next_entry "$folder/grub.cfg" ||
        refuse "$folder/grub.cfg knows no one-shot entry" "run update-grub (grub2-mkconfig) on the machine, as the playbook 'prepare' does"
    # GRUB cannot write there: it would boot the kernel under test again and again.
    layers=$($probe --target=abstraction "$folder" 2>/dev/null | tr '\n' ' ')
    system=$($probe --target=fs "$folder" 2>/dev/null)
    case "$layers:$system" in
        *[a-z]*:* | *:btrfs | *:zfs) refuse "GRUB cannot forget a one-shot choice on ${layers:-}${system:-} below /boot" \
            "put /boot on a plain partition with ext4, or set perfbisect_boot_method: kexec" ;;
    esac
    refuse_secure_boot
    check_grubenv "$folder"
    # RHEL 7's GRUB on UEFI has no other commands: those of its own menu are there.
    efi=
    ! grep -q '^[[:space:]]*linuxefi' "$folder/grub.cfg" || efi=efi
    place_in "$root/boot" "$1" "$2"
    uuid=$($probe --target=fs_uuid "$root/boot")
    {
        without_our_block "$folder/custom.cfg"
        echo '# perfbisect: begin. Chosen for one boot at a time.'
        # Where GRUB has users, an entry without that word asks for a password, also when it was chosen before.
        echo "menuentry 'perfbisect' --unrestricted --id $menu_id {"
        echo "    search --no-floppy --fs-uuid --set=root $uuid"
        # Not echo: that of dash makes one backslash of two.
        printf '    linux%s %s %s\n' "$efi" "$($relative "$root/boot/vmlinuz-perfbisect")" "$(in_grub_words "$3")"
        [ -z "$2" ] || echo "    initrd$efi $($relative "$root/boot/initrd-perfbisect")"
        echo '}'
        echo '# perfbisect: end'
    } >"$folder/custom.cfg.new" && mv "$folder/custom.cfg.new" "$folder/custom.cfg"
    $choose $menu_id || refuse "$choose cannot choose the entry" "look at $folder/grubenv on the machine: grub-editenv - list"
    case $folder in
        "$root/boot/grub" | "$root/boot/grub2") ;;
        *)
            find_grub_tool -editenv
            $tool "$folder/grubenv" list | grep -qx "next_entry=$menu_id" ||
                refuse "$choose does not write into ${folder#"$root"}/grubenv, which this menu reads" "set perfbisect_boot_method: kexec"
            ;;
    esac
    arm
    restart
}
place_in() { # folder, image, initrd or ''
    rm -f "$1/vmlinuz-perfbisect" "$1/initrd-perfbisect"
    cp "$2" "$1/vmlinuz-perfbisect" && { [ -z "$3" ] || cp "$3" "$1/initrd-perfbisect"; } || {
        rm -f "$1/vmlinuz-perfbisect" "$1/initrd-perfbisect"
        refuse_kernel "there is no room for the kernel in ${1#"$root"}" "make room there: old kernels of the machine"
    }
}

entry_folder() { bootctl -x 2>/dev/null || bootctl -p 2>/dev/null; }
boot_systemd_boot() { # image, initrd or '', command line
    [ -d "$root/sys/firmware/efi" ] || refuse "the machine was started by a BIOS, and systemd-boot needs UEFI" "set perfbisect_boot_method to grub or kexec"
    need bootctl systemd-boot
    bootctl is-installed >/dev/null 2>&1 || refuse "systemd-boot does not boot this machine" "run 'bootctl install' there, or set perfbisect_boot_method: grub"
    refuse_secure_boot
    folder=$(entry_folder)
    [ -n "$folder" ] || refuse "bootctl finds no partition for boot entries" "mount the EFI system partition on /efi or /boot"
    place_in "$folder" "$1" "$2"
    mkdir -p "$folder/loader/entries"
    {
        echo 'title perfbisect'
        echo 'linux /vmlinuz-perfbisect'
        [ -z "$2" ] || echo 'initrd /initrd-perfbisect'
        echo "options $3"
    } >"$folder/loader/entries/$loader_entry"
    # Before 250 the order was another one: it would boot the kernel under test again and again.
    if bootctl --no-pager list 2>/dev/null | grep -q 'title: perfbisect (default)'; then
        rm -f "$folder/loader/entries/$loader_entry"
        refuse "systemd-boot would take the kernel under test for the machine's default" \
            "write 'default NAME.conf' of the machine's own entry into $folder/loader/loader.conf on the machine"
    fi
    said=$(bootctl set-oneshot "$loader_entry" 2>&1) ||
        refuse "bootctl cannot choose the entry: $(echo "$said" | last_words)" "mount /sys/firmware/efi/efivars for writing on the machine"
    arm
    restart
}

boot() { # METHOD KEY RELEASE CMDLINE MORE SECONDS
    method=$1 key=$2 seconds=$6
    echo "boot_id=$(cat "$root/proc/sys/kernel/random/boot_id")"
    echo "ran=$(running_key)"
    echo "crashes=$(crash_records)"
    disarm_watchdog
    note_default
    take_new "$key"
    [ -e "$kernels/$key/image" ] || refuse "the kernel $key is not on the machine" "try again: it is sent anew"
    touch "$kernels/$key"
    initrd=
    if [ -e "$kernels/$key/modules.tar.gz" ]; then
        install_modules "$key" "$3"
        if needs_initrd "$3"; then
            make_initrd "$key" "$3"
            initrd=$kernels/$key/initrd
        fi
    fi
    for name in release build_id; do echo "default_$name=$(tell $name "$note")"; done
    echo "base_cmdline=$(base_cmdline "$4")"
    line=$(compose_cmdline "$key" "$(base_cmdline "$4")" "$5")
    [ -n "$initrd" ] || name_root_for_kernel
    sync
    case $method in
        kexec) boot_kexec "$kernels/$key/image" "$initrd" "$line" ;;
        grub) boot_grub "$kernels/$key/image" "$initrd" "$line" ;;
        systemd-boot) boot_systemd_boot "$kernels/$key/image" "$initrd" "$line" ;;
        pxe)
            echo "initrd=$initrd"
            arm
            ;;
        *) refuse "there is no boot method '$method'" "set perfbisect_boot_method to kexec, grub, systemd-boot or pxe" ;;
    esac
    echo "booting=$line"
}

# --- back to the default kernel

forget_choice() {
    folder=$(grub_folder)
    if [ -n "$folder" ] && [ -e "$folder/grubenv" ]; then
        for tool in grub-editenv grub2-editenv; do
            have $tool && $tool "$folder/grubenv" list | grep -qx "next_entry=$menu_id" && $tool "$folder/grubenv" unset next_entry
        done
    fi
    if have bootctl && [ -e "$(entry_folder)/loader/entries/$loader_entry" ]; then bootctl set-oneshot '' >/dev/null 2>&1; fi
    return 0
}
# kexec-tools of Debian make each reboot a kexec while a kernel is loaded, or where LOAD_KEXEC is set.
restart() {
    ! have kexec || kexec --unload >/dev/null 2>&1
    [ ! -e "$root/etc/init.d/kexec-load" ] || touch "$root/no-kexec-reboot"
    later 'systemctl reboot || reboot'
}
forget() {
    [ -z "$(running_key)" ] || refuse "a kernel under test still runs" "boot the default kernel first"
    forget_choice
    disarm_watchdog
    ! have kexec || kexec --unload >/dev/null 2>&1
    folder=$(grub_folder)
    if grep -qs '^# perfbisect: begin' "$folder/custom.cfg"; then
        without_our_block "$folder/custom.cfg" >"$folder/custom.cfg.new" && mv "$folder/custom.cfg.new" "$folder/custom.cfg"
        [ -s "$folder/custom.cfg" ] || rm -f "$folder/custom.cfg"
    fi
    if have bootctl && [ -n "$(entry_folder)" ]; then
        folder=$(entry_folder)
        rm -f "$folder/loader/entries/$loader_entry" "$folder/vmlinuz-perfbisect" "$folder/initrd-perfbisect"
    fi
    rm -rf $(ours_in_modules) "$modules/.perfbisect-new" "$root/boot/vmlinuz-perfbisect" "$root/boot/initrd-perfbisect" \
        "$home" "$root/no-kexec-reboot"
    sync
}

action=$1
shift
case $action in
    state) state ;;
    ask)
        state
        if whole "$1"; then exit 0; fi
        make_room "$2"
        exit 1
        ;;
    boot) boot "$@" ;;
    crashes) print_crashes "$@" ;;
    up)
        forget_choice
        disarm_watchdog
        ;;
    restart)
        forget_choice
        [ "${1:-}" = armed ] || disarm_watchdog
        restart
        ;;
    forget) forget ;;
esac
