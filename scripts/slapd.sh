#!/usr/bin/env bash
# Unpacks Debian's LDAP server into a folder below the cache of the user, once, and prints the folder. Nothing of the
# machine outside it changes.
set -euo pipefail
PACKAGES=(slapd libltdl7 libodbc2 libwrap0 libldap-2.5-0 libsasl2-2 libperl5.36 libargon2-1)

folder="${XDG_CACHE_HOME:-$HOME/.cache}/conspectus/slapd-$(sha256sum <"$0" | cut -c 1-12)"
if [ ! -x "$folder/usr/sbin/slapd" ]; then
  mkdir -p "$(dirname "$folder")"
  new="$(mktemp -d "$folder.new.XXXXXX")"
  (cd "$new" && apt-get download -qq "${PACKAGES[@]}" >&2 && for package in *.deb; do dpkg -x "$package" .; rm "$package"; done)
  rm -rf "$folder"
  mv "$new" "$folder"
fi
echo "$folder"
