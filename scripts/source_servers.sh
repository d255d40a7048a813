#!/usr/bin/env bash
# Builds the servers of Debian that tests of connectors start, once, and prints their folder: the root of a small
# Debian in the cache of the user. Nothing of the machine outside it changes. It needs root and mmdebstrap.
set -euo pipefail
readonly RELEASE=bookworm
readonly SERVERS=dovecot-imapd,dokuwiki,php-cli,php-xml,redmine,redmine-sqlite,puma
readonly ANSWERS='redmine redmine/instances/default/dbconfig-install boolean true
redmine redmine/instances/default/database-type select sqlite3'

# Another list of servers is another folder.
digest="$(printf '%s' "$RELEASE $SERVERS $ANSWERS" | sha256sum | cut -c 1-12)"
folder="${XDG_CACHE_HOME:-$HOME/.cache}/conspectus/source-servers-$digest"
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9

if [ ! -e "$folder/etc/debian_version" ]; then
  command -v mmdebstrap >/dev/null || { echo "mmdebstrap is missing: apt-get install mmdebstrap" >&2; exit 1; }
  rm -rf "$folder.new"
  # Nothing waits for a disk: a folder that was not finished is built anew.
  mmdebstrap --quiet --variant=minbase --include="$SERVERS" --dpkgopt=force-unsafe-io \
    --aptopt='Apt::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --essential-hook="printf '%s\n' \"$ANSWERS\" | chroot \"\$1\" debconf-set-selections" \
    "$RELEASE" "$folder.new" http://deb.debian.org/debian >&2
  mv "$folder.new" "$folder"
fi
echo "$folder"
