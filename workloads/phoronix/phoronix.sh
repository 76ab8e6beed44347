#!/bin/sh
# One run of the Phoronix Test Suite in batch mode: its result is left as results.json.
#
#     phoronix.sh PTS TEST      PTS: its program; TEST: a test profile or suite that is installed
set -eu
export TEST_RESULTS_NAME=perfbisect TEST_RESULTS_IDENTIFIER=run TEST_RESULTS_DESCRIPTION=perfbisect
export OUTPUT_FILE="$PWD/results.json"
rm -f "$OUTPUT_FILE"
# Else this run would be added to the result of the one before.
"$1" remove-result perfbisect >/dev/null 2>&1 || true
"$1" batch-run "$2"
"$1" result-file-to-json perfbisect
# It ends with 0 whatever happened.
[ -s "$OUTPUT_FILE" ] || { echo "the Phoronix Test Suite left no result of $2" >&2; exit 1; }
"$1" remove-result perfbisect >/dev/null 2>&1 || true
