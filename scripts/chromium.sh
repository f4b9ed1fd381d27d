#!/usr/bin/env bash
# A browser for tests/browser: Debian's Chromium (110 MB to fetch, 410 MB on the disk, 20 s), and Playwright in .venv,
# which fetches no browser of its own. Without it those tests are skipped. `scripts/setup.sh test` comes first.
#
#   scripts/chromium.sh
#
# A second run finds both and does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v chromium >/dev/null; then
    as_root=()
    [[ "$(id -u)" -eq 0 ]] || as_root=(sudo)
    echo "setup: installing chromium, for tests of pages"
    "${as_root[@]}" apt-get update -q >/dev/null
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        -o DPkg::Lock::Timeout=300 chromium fonts-dejavu-core >/dev/null
fi
.venv/bin/python -c 'import playwright' 2>/dev/null ||
    .venv/bin/python -m pip --disable-pip-version-check --quiet install --requirement requirements/browser.txt
