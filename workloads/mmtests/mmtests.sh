#!/bin/sh
# One run of MMTests: its log tree is left in results/, with what its own extraction says of each benchmark beside.
#
#     mmtests.sh ROOT CONFIG      ROOT: MMTests on this machine; CONFIG: a file beside this script, or one of ROOT
set -eu
here=$PWD
[ -x "$1/run-mmtests.sh" ] || { echo "there is no MMTests in $1 (no run-mmtests.sh)" >&2; exit 1; }
root=$(cd "$1" && pwd)
config=$root/$2
[ ! -f "$here/$2" ] || config=$here/$2
[ -f "$config" ] || { echo "there is no config $2, neither in $here nor in $root" >&2; exit 1; }

cd "$root"
./run-mmtests.sh --no-monitor --config "$config" perfbisect

log=$root/work/log
for logs in "$log"/perfbisect/iter-0/*/logs; do
	[ -d "$logs" ] || { echo "MMTests left no results in $log/perfbisect" >&2; exit 1; }
	benchmark=$(basename "$(dirname "$logs")")
	extracted=$log/perfbisect/$benchmark.json
	# Its extraction needs Perl modules; where they are missing, plain times can still be read from the tree.
	if ! bin/extract-mmtests.pl -d "$log" -n perfbisect -b "$benchmark" --print-json >"$extracted"; then
		echo "extract-mmtests.pl cannot read $benchmark's results" >&2
		rm -f "$extracted"
	fi
done
rm -rf "$here/results"
mv "$log/perfbisect" "$here/results"
