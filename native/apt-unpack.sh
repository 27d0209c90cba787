#!/bin/sh
# Usage: apt-unpack.sh DIRECTORY PACKAGE…
# Unpacks distribution packages and their missing dependencies below DIRECTORY. Installs nothing:
# needs no root, starts no service, and changes no file outside DIRECTORY.
set -eu

# apt resolves relative paths against its root directory.
target=$(mkdir -p "$1" && cd "$1" && pwd)
shift
if ! command -v apt-get >/dev/null; then
    echo "Missing: $*. This system has no apt; install these programs and put them on the PATH." >&2
    exit 1
fi

work=$target/.apt
mkdir -p "$work/lists/partial" "$work/archives/partial"

# apt with separate lists and archives. Its sandbox user could not read a directory below /root.
apt() {
    apt-get -qq -y \
        -o Dir::State::lists="$work/lists" \
        -o Dir::Cache="$work" \
        -o Dir::Cache::archives="$work/archives" \
        -o Debug::NoLocking=1 \
        -o APT::Sandbox::User="$(id -un)" \
        "$@"
}

apt update
apt install --no-install-recommends --reinstall --download-only "$@"
for archive in "$work"/archives/*.deb; do
    dpkg-deb -x "$archive" "$target"
done
rm -rf "$work"
