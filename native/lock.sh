#!/bin/sh
# Pins the requirements to exact versions with hashes, for Python 3.11 and newer.
set -eu
cd "$(dirname "$0")/.."

"${UV:-uv}" --version >/dev/null || {
    echo "error: uv is not on the PATH; it resolves the requirements. Install it with pip, or set UV." >&2
    exit 1
}
for name in backend/requirements requirements requirements-dev native/go; do
    "${UV:-uv}" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-header --no-annotate "$name.in" -o "$name.txt"
done
# Apps for make test-machine PART=apps, which need Python 3.11 or 3.12.
for name in nautobot pretix; do
    "${UV:-uv}" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-header --no-annotate "tests/apps/$name.in" -o "tests/apps/$name.txt"
done
