#!/usr/bin/env bash
# Build the image of the Dockerfile with Buildah, without a daemon and without root, and use what is in it.
#
#   scripts/build_image.sh
#
# Called by root, it works as a user of its own. Where the base image cannot be fetched, Debian's Python takes its
# place. Without a builder it says so and ends well; a build that fails, or an image that does not work, does not.
set -euo pipefail

readonly BUILDER=image-builder PROGRAMS="buildah mmdebstrap newuidmap"
readonly USED='
set -eu
test "$(id -u)" = 10001
conspectus version --verbose
echo "We deploy on Tuesdays." | conspectus add -
conspectus search "when do we ship?" | grep Tuesdays
conspectus keys create --label image >/dev/null
conspectus serve 2>/dev/null &
for _ in $(seq 60); do
  python -c "import urllib.request; urllib.request.urlopen(\"http://127.0.0.1:$CONSPECTUS_PORT/readyz\")" 2>/dev/null && break
  sleep 1
done
kill $! && wait $!'

skip() {
  echo "image: not built: $*"
  exit 0
}

prepare() {
  for program in $PROGRAMS; do
    command -v "$program" >/dev/null || skip "there is no $program"
  done
  cd "$(dirname "$0")/.."
  work=$(mktemp -d)
  trap 'rm -rf "$work" 2>/dev/null || buildah unshare rm -rf "$work"' EXIT
  mkdir "$work/context"
  git ls-files -z | tar --create --null --files-from=- | tar --extract --directory "$work/context"
  cp "$0" "$work/build"
  chmod 755 "$work"
  if [ "$(id -u)" != 0 ]; then
    "$work/build" "$work"
    return
  fi
  id "$BUILDER" >/dev/null 2>&1 || useradd --system --add-subids-for-system --no-create-home "$BUILDER"
  chown --recursive "$BUILDER" "$work"
  runuser --user "$BUILDER" -- unshare --user true || skip "users may not have namespaces here"
  runuser --user "$BUILDER" -- "$work/build" "$work"
}

build() {
  cd "$1"
  export HOME=$1 XDG_RUNTIME_DIR=$1/run BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
  mkdir -m 700 run
  base=$(sed -n 's/^ARG PYTHON=//p' context/Dockerfile)
  options=()
  if ! timeout 60 buildah pull --quiet "docker.io/library/python:$base" 2>/dev/null; then
    debian
    base=debian
    options=(--pull=never --build-arg PYTHON=debian --volume /etc/ssl/certs:/etc/ssl/certs:ro)
  fi
  buildah build --quiet --format docker --layers=false "${options[@]}" --tag conspectus context
  container=$(buildah from --pull=never localhost/conspectus)
  buildah run "$container" -- sh -c "$USED"
  echo "image: built by user $(id -u) from python:$base, and used"
}

# An image of Debian with its Python, for a machine that reaches its mirror but no registry.
debian() {
  certificates=/etc/ssl/certs/ca-certificates.crt
  mmdebstrap --quiet --mode=unshare --variant=apt \
    --include=ca-certificates,python3,python3-pip,python3-venv,python-is-python3 \
    "$(. /etc/os-release && echo "$VERSION_CODENAME")" base.tar || skip "there is no base image to be had"
  container=$(buildah from scratch)
  buildah add --quiet "$container" base.tar /
  rm base.tar
  buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    --env PIP_BREAK_SYSTEM_PACKAGES=1 --env PIP_CERT=$certificates --env NODE_EXTRA_CA_CERTS=$certificates "$container"
  buildah commit --quiet --rm "$container" localhost/python:debian
}

if [ $# = 0 ]; then prepare; else build "$1"; fi
