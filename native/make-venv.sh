#!/bin/sh
# Usage: make-venv.sh PYTHON
# Creates .venv with the `lab` command and its dependencies, at the pinned versions and hashes.
set -eu

python=$1
cd "$(dirname "$0")/.."

# Nginx, supervisor and pip write paths into files where these have a meaning of their own.
special='[][[:space:];%$"'"'"'\\`{}#:*?()&|<>!]'
if printf '%s' "$PWD" | grep -q "$special"; then
    echo "error: The path $PWD contains a space or one of ; % \$ \" ' \\ \` { } # : * ? [ ] ( ) & | < > !" >&2
    echo "Move the project to a folder without them." >&2
    exit 1
fi

command -v "$python" >/dev/null || {
    echo "error: $python is not on the PATH. Install Python 3.11 or newer, or: make PYTHON=/path/to/python" >&2
    exit 1
}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "error: Python is too old: found $("$python" --version 2>&1), needed 3.11 or newer. Another one: make PYTHON=python3.13" >&2
    exit 1
}

# Debian packages `venv` without pip; python3-pip-whl contains pip's wheel.
pip_from_wheel() {
    native/apt-unpack.sh .lab/pip python3-pip-whl
    "$python" -m venv --without-pip .venv
    wheel=$(echo .lab/pip/usr/share/python-wheels/pip-*.whl)
    .venv/bin/python "$wheel/pip" install --quiet --no-index "$wheel"
}

echo "Making .venv (about 30 s)"
if "$python" -c 'import ensurepip' 2>/dev/null; then
    "$python" -m venv .venv
else
    pip_from_wheel
fi
for requirements in backend/requirements.txt requirements.txt; do
    echo "Installing $requirements"
    .venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r "$requirements"
done
.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
