#!/bin/sh
# Settings of a machine that are no file.
#
#   host.sh swap|timers get          how it is: 'off', or what is on, separated by commas
#   host.sh swap|timers set VALUE    'off', or what to switch on again, as 'get' named it
#   host.sh quiet | restore          both of them off, noting what was on; and back as noted
#
# Exit code 3: this machine has no such thing.
set -eu
note=/run/perfbisect-quiet

swap() {
	[ -r /proc/swaps ] || exit 3
	case $1 in
	get) sed -n '2,$s/[[:space:]].*//p' /proc/swaps | paste -s -d , - | sed 's/^$/off/' ;;
	off) swapoff -a ;;
	*) echo "$1" | tr , '\n' | while read -r device; do swapon "$device"; done ;;
	esac
}

# What starts by itself: systemd's timers, and the daemons that run jobs at times.
timers() {
	[ -d /run/systemd/system ] || exit 3
	case $1 in
	get)
		{
			systemctl list-units --type=timer --state=active --plain --no-legend | cut -d ' ' -f 1
			for unit in cron.service crond.service anacron.service atd.service; do
				if systemctl --quiet is-active "$unit"; then echo "$unit"; fi
			done
		} | paste -s -d , - | sed 's/^$/off/'
		;;
	off)
		units=$(timers get)
		if [ "$units" != off ]; then echo "$units" | tr , '\n' | xargs systemctl stop; fi
		;;
	*) echo "$1" | tr , '\n' | xargs systemctl start ;;
	esac
}

case "$1 ${2-}" in
"swap get" | "timers get") "$1" get ;;
"swap set" | "timers set") "$1" "$3" ;;
"quiet ")
	for what in swap timers; do
		if before=$("$0" "$what" get); then
			"$0" "$what" set off
			echo "$what $before" >>"$note"
			echo "$what: $before -> $("$0" "$what" get)"
		else
			echo "$what: there is nothing to switch off"
		fi
	done
	;;
"restore ")
	[ -r "$note" ] || exit 0
	while read -r what before; do
		if [ "$before" != off ]; then "$0" "$what" set "$before"; fi
	done <"$note"
	rm "$note"
	;;
*)
	echo "usage: host.sh swap|timers get|set VALUE; host.sh quiet|restore" >&2
	exit 2
	;;
esac
