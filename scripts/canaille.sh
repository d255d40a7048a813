#!/usr/bin/env bash
# Installs the identity provider canaille into an environment below the cache of the user, once, and prints its Python.
# Its libraries are not those of the project.
set -euo pipefail
PYTHON="${1:?the Python that makes the environment}"
PACKAGES=('canaille[front,oidc]==0.3.6')

folder="${XDG_CACHE_HOME:-$HOME/.cache}/conspectus/canaille-$(sha256sum <"$0" | cut -c 1-12)"
if [ ! -e "$folder/complete" ]; then
  rm -rf "$folder"
  "$PYTHON" -m venv "$folder" >&2
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "${PACKAGES[@]}" >&2
  touch "$folder/complete"
fi
echo "$folder/bin/python"
