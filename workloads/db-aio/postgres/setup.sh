#!/bin/sh
# setup.sh DEVICE SCALE: a fresh file system on the device, and on it a database of 100,000 accounts a unit of scale.
. ./common.sh
mkfs.ext2 -q -F "$1"
mkdir -p "$place"
mount -t ext2 -o noatime "$1" "$place"
chmod 755 "$PWD" "$place"
chown postgres:postgres "$place"
cd "$place"
as_postgres "$bin/initdb" -D "$data" --no-sync --locale=C -E UTF8 -A trust >/dev/null
# Every commit reaches the device; what would come at times of its own (checkpoints, autovacuum) does not.
as_postgres tee -a "$data/postgresql.conf" >/dev/null <<END
listen_addresses = ''
unix_socket_directories = '$place'
shared_buffers = 16MB
max_connections = 20
jit = off
autovacuum = off
checkpoint_timeout = 1d
max_wal_size = 512MB
max_wal_senders = 0
wal_level = minimal
END
server start
as_postgres "$bin/pgbench" -h "$place" -q -i -s "$2" postgres
server stop
