#!/bin/sh
# Usage: lock.sh STACK PYTHON
# Writes STACK/requirements.txt: the hashes of the versions in STACK/requirements.in, resolved with the
# stack's PYTHON. Versions already in requirements.txt do not change: the stacks are deliberately old.
set -eu
stack=$1 python=$2
cd "$(dirname "$0")/$stack"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" -m venv "$scratch/venv"
pip="$scratch/venv/bin/pip --quiet --disable-pip-version-check install"
$pip --require-hashes -r ../bootstrap.txt
# The last pip-tools for Python 3.6.
$pip pip-tools==6.4.0
"$scratch/venv/bin/pip-compile" --quiet --generate-hashes --allow-unsafe --no-header --no-annotate \
    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host requirements.in
