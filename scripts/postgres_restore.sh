#!/bin/sh
# Restore a backup that postgres_backup.sh made into an empty database, then build the indexes of its collections.
#
#   scripts/postgres_restore.sh FILE URL
#
# All of it is restored in one transaction, or nothing. Where the user may not make the extension vector, or the role of
# row security, have an administrator make them before (docs/operate/backup.md). PG_BIN names the folder of PostgreSQL's programs where they
# are not on the PATH, and CONSPECTUS the program conspectus.
set -eu

[ $# -eq 2 ] || { echo "usage: $0 FILE URL" >&2; exit 2; }
file=$1 url=$2
bin=${PG_BIN:+$PG_BIN/}
conspectus=${CONSPECTUS:-conspectus}

tables=$("${bin}psql" --no-psqlrc --tuples-only --no-align --dbname="$url" \
    --command="SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()")
if [ "$tables" -ne 0 ]; then
    echo "the database has $tables tables; restore to one that is empty" >&2
    exit 1
fi
# Comments are those of the extension, which only its owner may set, and the mark that row security is set up, which is
# then done anew at the next start, with the privileges.
"${bin}pg_restore" --exit-on-error --single-transaction --no-owner --no-privileges --no-comments --dbname="$url" "$file"
"${bin}psql" --no-psqlrc --quiet --dbname="$url" --command="SET client_min_messages = error" --command="ANALYZE"
"${bin}psql" --no-psqlrc --tuples-only --no-align --dbname="$url" \
    --command="SELECT id FROM collections ORDER BY name" |
while IFS= read -r collection; do
    "$conspectus" --data-dir "$url" --collection "$collection" reindex </dev/null
done
"$conspectus" --data-dir "$url" check
