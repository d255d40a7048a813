#!/bin/sh
# A backup of a store in PostgreSQL, as it is at one moment, while it is used: one file, checked.
#
#   scripts/postgres_backup.sh URL FILE
#
# Tables of indexes are left out: they are built anew from the others. The programs of PostgreSQL must be of the
# server's version or newer; PG_BIN names their folder where they are not on the PATH. The password belongs into
# PGPASSWORD or ~/.pgpass, not into the URL, which other users of the machine can see.
set -eu

[ $# -eq 2 ] || { echo "usage: $0 URL FILE" >&2; exit 2; }
url=$1 file=$2 part="$2.part.$$"
bin=${PG_BIN:+$PG_BIN/}

if [ -e "$file" ]; then
    echo "$file is there already; give another name" >&2
    exit 1
fi
trap 'rm -f "$part"' EXIT
trap 'exit 130' INT TERM
umask 077
"${bin}pg_dump" --format=custom --no-owner --no-privileges \
    --exclude-table='conspectus_indexes' --exclude-table='index_*' --file="$part" --dbname="$url"
# Every block is read and unpacked once, so that a file that cannot be restored never gets its name.
"${bin}pg_restore" --file=/dev/null "$part"
sync "$part" 2>/dev/null || sync
ln "$part" "$file"
echo "$file: $(wc -c < "$file" | tr -d ' ') bytes"
