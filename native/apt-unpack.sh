#!/bin/sh
# Usage: apt-unpack.sh DIRECTORY PACKAGE…
# Unpacks distribution packages, with what they depend on and the system lacks, below DIRECTORY.
# Nothing is installed: no root needed, no system service started, no file outside changed.
set -eu

# apt takes relative folders as relative to its own root.
target=$(mkdir -p "$1" && cd "$1" && pwd)
shift
if ! command -v apt-get >/dev/null; then
    echo "Missing: $*. This system has no apt; install these programs and put them on the PATH." >&2
    exit 1
fi

work=$target/.apt
mkdir -p "$work/lists/partial" "$work/archives/partial"

# apt with lists and archives of its own. The sandbox user could not read a directory below /root.
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
