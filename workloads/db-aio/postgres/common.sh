# Read by the others. PostgreSQL refuses root; its user comes with the package.
set -eu
place=$PWD/db
data=$place/data
for bin in /usr/lib/postgresql/*/bin; do :; done
[ -x "$bin/postgres" ] || { echo "PostgreSQL is not installed (package postgresql)" >&2; exit 1; }
as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@"; }
server() { as_postgres "$bin/pg_ctl" -D "$data" -l "$place/log" -s -w -t 300 "$@"; }
