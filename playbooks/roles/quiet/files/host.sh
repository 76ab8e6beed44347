#!/bin/sh
# Settings of a machine. In a trial the measuring agent makes them, and asks this script for those that are no file.
#
#   host.sh swap|timers get          how it is: 'off', or what is on, separated by commas
#   host.sh swap|timers set VALUE    'off', or what to switch on again, as 'get' named it
#   host.sh irqs get                 'irqbalance' or 'no-irqbalance': whether that moves interrupts every ten seconds
#   host.sh irqs set VALUE           the same; a list of CPUs: without it, before the list is written to their files
#   host.sh check SETTINGS           what 'quiet' would change; changes nothing
#   host.sh quiet SETTINGS           makes the settings, lines 'NAME PLACE VALUE', noting what was there before
#   host.sh restore                  puts all back as noted, but for what is gone from the machine
#
# Exit code 3: this machine has no such thing; 1: something could not be put back, and is still noted.
set -eu
# In memory, as the settings are: a reboot ends both. Tests have it elsewhere.
note=${PB_NOTE:-/run/perfbisect-quiet} swaps=${PB_ROOT:-}/proc/swaps
systemd=${PB_ROOT:-}/run/systemd/system transient=${PB_ROOT:-}/run/systemd/transient

swap() {
	[ -r "$swaps" ] || exit 3
	case $1 in
	# DEVICE or DEVICE:PRIORITY; a negative one is the kernel's own choice.
	get) awk 'NR > 1 { print $1 ($5 < 0 ? "" : ":" $5) }' "$swaps" | paste -s -d , - | sed 's/^$/off/' ;;
	off) swapoff -a ;;
	*)
		failed=0
		for one in $(echo "$1" | tr , ' '); do # one that is on already does not keep the others off
			[ -e "${PB_ROOT:-}${one%:*}" ] || continue # what is gone cannot come back
			case $one in
			*:*) swapon -p "${one##*:}" "${one%:*}" || failed=1 ;;
			*) swapon "$one" || failed=1 ;;
			esac
		done
		return $failed
		;;
	esac
}

irqs() {
	[ -d "$systemd" ] || exit 3
	case $1 in
	get) if systemctl --quiet is-active irqbalance.service; then echo irqbalance; else echo no-irqbalance; fi ;;
	irqbalance) systemctl start irqbalance.service ;;
	*) if systemctl --quiet is-active irqbalance.service; then systemctl stop irqbalance.service; fi ;;
	esac
}

# What starts by itself: systemd's timers, and the daemons that run jobs at times.
timers() {
	[ -d "$systemd" ] || exit 3
	case $1 in
	get)
		{
			systemctl list-units --type=timer --state=active --plain --no-legend | cut -d ' ' -f 1 |
				while read -r unit; do # what systemd-run made is left alone: once stopped, it is gone
					[ -e "$transient/$unit" ] || echo "$unit"
				done
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

# --- settings of a list, lines 'NAME PLACE VALUE'. PLACE: a pattern of files, or '!' for what this script sets itself

value_of() { # of "always [madvise] never" the chosen word; anything else as it is
	head -n 1 "$1" 2>/dev/null | sed 's/.*\[\([^]]*\)\].*/\1/'
}
# Noted before it is changed, once: what is made quiet twice, or after a kill, goes back to what was found at first.
remember() { # name, place, before
	grep -qs "^$1 $2 " "$note" || echo "$1 $2 $3" >>"$note"
}
own_setting() { # check|quiet, name, value
	if ! before=$("$0" "$2" get); then
		echo "$2: there is no such setting here"
	elif [ "$before" = "$3" ]; then
		echo "$2: $before already"
	elif [ "$1" = check ]; then
		echo "$2: $before -> $3"
	else
		remember "$2" ! "$before"
		if said=$("$0" "$2" set "$3" 2>&1); then echo "$2: $before -> $3"; else echo "$2: not set: $said"; fi
	fi
}
files_of() { # check|quiet, name, pattern, value
	there=0 same=0 refused=0 befores=
	for file in $3; do
		[ -e "$file" ] || continue
		before=$(value_of "$file")
		case $before in notsupported | notimplemented) continue ;; esac # as cpu/smt/control says of a CPU without
		there=$((there + 1))
		if [ "$before" = "$4" ]; then
			same=$((same + 1))
			continue
		fi
		if [ "$1" = quiet ]; then
			remember "$2" "$file" "$before"
			{ printf %s "$4" >"$file"; } 2>/dev/null || refused=$((refused + 1))
		fi
		case ",$befores," in *",$before,"*) ;; *) befores=$befores${befores:+,}$before ;; esac
	done
	changed=$((there - same - refused))
	if [ $there = 0 ]; then
		echo "$2: there is no such setting here ($3)"
	elif [ $same = $there ]; then
		echo "$2: $4 already"
	elif [ $changed = 0 ]; then
		echo "$2: not set: the kernel refuses $4 ($refused files); it is $befores"
	else
		echo "$2: $befores -> $4 ($changed of $there files$([ $refused = 0 ] || echo "; $refused refuse it"))"
	fi
}
all_settings() { # check|quiet, list
	echo "$2" | while read -r name place value; do
		case $place in
		"") ;;
		!*) own_setting "$1" "$name" "$value" ;;
		*) files_of "$1" "$name" "$place" "$value" ;;
		esac
	done
}
# The last change first: second threads of cores come back before their idle states do.
restore() {
	[ -r "$note" ] || {
		echo "nothing is noted to be put back"
		return 0
	}
	failed=0
	sed '1!G;h;$!d' "$note" >"$note.undo"
	while read -r name place before; do
		if [ "$place" = ! ]; then
			[ "$before" = off ] || "$0" "$name" set "$before" || failed=$((failed + 1))
		elif [ ! -e "$place" ]; then # as of an interrupt whose device was unplugged: nothing is left to undo
			echo "$name: $place is gone"
			continue
		elif [ "$(value_of "$place")" != "$before" ]; then
			{ printf %s "$before" >"$place"; } 2>/dev/null || [ "$(value_of "$place")" = "$before" ] || {
				echo "$place: cannot be put back to $before" >&2
				failed=$((failed + 1))
			}
		fi
		echo "$name: back to $before"
	done <"$note.undo" >"$note.said"
	uniq -c "$note.said" | sed 's/^ *1 //; s/^ *\([0-9]*\) \(.*\)/\2 (\1 files)/'
	[ $failed = 0 ] || exit 1
	rm "$note" "$note.undo" "$note.said"
}

case "$1 ${2-}" in
"swap get" | "timers get" | "irqs get") "$1" get ;;
"swap set" | "timers set" | "irqs set") "$1" "$3" ;;
"check "* | "quiet "*) all_settings "$1" "$2" ;;
"restore "*) restore ;;
*)
	echo "usage: host.sh swap|timers|irqs get|set VALUE; host.sh check|quiet SETTINGS; host.sh restore" >&2
	exit 2
	;;
esac
