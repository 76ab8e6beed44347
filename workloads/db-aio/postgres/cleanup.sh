#!/bin/sh
# A run that was ended from outside may have left the server.
. ./common.sh
(cd "$place" && server stop -m immediate) || true
umount "$place"
