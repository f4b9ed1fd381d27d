#!/usr/bin/env bash
# Older releases of Vela, each in a virtual environment of its own under build/velas, for the tests that run only
# with BYTEWRIGHT_TESTS=thorough and for tools/vela_files.py. `scripts/setup.sh test` comes first.
#
#   scripts/velas.sh
#
# A second run finds each release's stamp, which is its requirements, and does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

for lock in requirements/vela-*.txt; do
    version="$(basename "$lock" .txt)"
    folder="build/velas/${version#vela-}"
    if [[ -x "$folder/bin/vela" ]] && cmp -s "$lock" "$folder/ready"; then
        continue
    fi
    echo "setup: installing ${version/-/ } for tests of its streams"
    .venv/bin/python -m venv --clear "$folder"
    "$folder/bin/python" -m pip --disable-pip-version-check --quiet install --no-deps --requirement "$lock"
    cp "$lock" "$folder/ready"
done
