#!/bin/sh
# run.sh CLIENTS TRANSACTIONS: starts the server, does the transactions, and stops it; what it writes last is its checkpoint.
. ./common.sh
cd "$place"
server start
as_postgres "$bin/pgbench" -h "$place" -M prepared -c "$1" -t "$2" postgres && code=0 || code=$?
server stop -m fast
exit "$code"
