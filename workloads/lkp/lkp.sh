#!/bin/sh
# One run of an lkp-tests job: the folder of its results is left as results/.
#
#     lkp.sh LKP JOB      LKP: the program bin/lkp of lkp-tests; JOB: an atomic job beside this script
set -eu
[ -f "$2" ] || { echo "there is no job $2 in $PWD" >&2; exit 1; }
rm -rf results last
"$1" run -o "$PWD/last" "$PWD/$2"
# It ends with 0 whatever happened.
[ -f last/stats.json ] || { echo "lkp left no statistics of the job $2" >&2; exit 1; }
# Moved, not copied: lkp counts its results of a kernel and refuses the hundredth.
mv "$(readlink -f last)" results
rm -f last
