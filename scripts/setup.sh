#!/usr/bin/env bash
# Everything that `make demo` or `make test` needs, installed once: Debian packages, the virtual environment
# in .venv, and the Python packages of the lock file, at exactly its versions.
#
#   scripts/setup.sh demo|test
#
# A second run finds a stamp and does nothing. The stamp is a checksum of all that the environment was made
# from, so a changed lock file, a changed C source of the planner or a moved folder sets it up again.
# PYTHON names another interpreter than the first of python3.11 and python3 that is 3.11 or later.
set -euo pipefail
cd "$(dirname "$0")/.."

level="${1:-}"
case "$level" in
demo | test) ;;
*)
    echo "usage: scripts/setup.sh demo|test" >&2
    exit 2
    ;;
esac
lock="requirements/$level.txt"
log="build/setup.log"

say() { echo "setup: $*"; }

fail() {
    echo "setup: error: $1" >&2
    shift
    for line in "$@"; do echo "       $line" >&2; done
    exit 1
}

# Runs a command with its output in the log; shows the end of the log if the command fails.
logged() {
    mkdir -p build
    echo "\$ $*" >>"$log"
    if ! "$@" >>"$log" 2>&1; then
        tail -n 15 "$log" >&2
        return 1
    fi
}

# --- Nothing to do? ---------------------------------------------------------------------------------------

# What the environment of a level was made from; `test` holds all of `demo`.
fingerprint() {
    pwd
    sha256sum "requirements/$1.txt" scripts/setup.sh pyproject.toml setup.py src/bytewright/plan/*.[ch]
}

ready() { [[ -f ".venv/.ready-$1" && "$(cat ".venv/.ready-$1")" == "$(fingerprint "$1")" ]]; }

if .venv/bin/python -c '' 2>/dev/null && { ready "$level" || ready test; }; then
    exit 0
fi

# --- Debian packages -------------------------------------------------------------------------------------

python=""
find_python() {
    local candidate
    for candidate in ${PYTHON:-python3.11 python3}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            python="$candidate"
            return 0
        fi
    done
    return 1
}

makes_environments() { "$python" -c 'import ensurepip, venv; ensurepip.version()' 2>/dev/null; }

has_python_header() {
    "$python" -c 'import pathlib, sysconfig, sys
sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' 2>/dev/null
}

has() { command -v "$1" >/dev/null 2>&1; }

# A compiler is there only when a program with a header of the C library links, with the options given.
compiles() { # compiles COMPILER OPTION...
    local folder result=0
    has "$1" || return 1
    folder="$(mktemp -d)"
    printf '#include <stdio.h>\nint main(void) { return 0; }\n' >"$folder/main.c"
    "$@" -o "$folder/main" "$folder/main.c" 2>/dev/null || result=1
    rm -r "$folder"
    return "$result"
}

has_newlib() { [[ "$(arm-none-eabi-gcc -print-file-name=libc.a 2>/dev/null)" == */libc.a ]]; }

missing=()
reasons=()
need() { # need PACKAGES REASON TEST...: the packages are missing unless the test succeeds
    local packages="$1" reason="$2"
    shift 2
    if ! "$@"; then
        # shellcheck disable=SC2206 # a list of packages is meant to be split
        missing+=($packages)
        reasons+=("$packages: $reason")
    fi
}

look_for_packages() {
    missing=()
    reasons=()
    if find_python; then
        need python3-venv "makes the virtual environment" makes_environments
        need python3-dev "header of the planner's native core" has_python_header
    else
        need "python3 python3-venv python3-dev" "the interpreter" false
    fi
    need "gcc libc6-dev" "compiles generated C for this machine" compiles cc
    need gcc-arm-none-eabi "compiles generated C for the boards" has arm-none-eabi-gcc
    need libnewlib-arm-none-eabi "the C library of the boards" has_newlib
    need qemu-system-arm "runs the boards" has qemu-system-arm
    if [[ "$level" == test ]]; then
        need "clang libclang-rt-14-dev" "the second compiler that generated C must satisfy, with its sanitizers" \
            compiles clang -fsanitize=address,undefined
        need "gcc-aarch64-linux-gnu libc6-dev-arm64-cross" "compiles generated C for Arm processors of 64 bits" \
            compiles aarch64-linux-gnu-gcc -static
        need "gcc-riscv64-linux-gnu libc6-dev-riscv64-cross" "compiles generated C for RISC-V" \
            compiles riscv64-linux-gnu-gcc -static
        need clang-19 "knows the intrinsics of RISC-V's vectors" has clang-19
        need qemu-user "runs programs for other processors" has qemu-aarch64
        need tcc "compiles generated C at once, where only its results count" compiles tcc
        need cppcheck "counts what the generated C has against MISRA C" has cppcheck
        need "libc6-dev-i386 lib32gcc-12-dev" "runs generated C in 32 bits, with the sanitizers" \
            compiles clang -m32 -fsanitize=address,undefined
    fi
}

install_packages() {
    local -a as_root=()
    has apt-get || fail "these Debian packages, or what your system calls them, are missing: ${missing[*]}" \
        "there is no apt-get here: install them and run the same command again"
    if [[ "$(id -u)" -ne 0 ]]; then
        has sudo || fail "these Debian packages are missing: ${missing[*]}" \
            "and this user is neither root nor has sudo; as root, run" \
            "apt-get update && apt-get install ${missing[*]}"
        as_root=(sudo)
        say "installing Debian packages needs root: sudo may ask for your password"
    fi
    for line in "${reasons[@]}"; do say "installing $line"; done
    logged "${as_root[@]}" apt-get update -q ||
        say "apt-get update failed (its output is above); trying with the package lists that are here"
    logged "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
        --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}" ||
        fail "apt-get could not install ${missing[*]}" "all of its output is in $log"
}

look_for_packages
if [[ ${#missing[@]} -gt 0 ]]; then
    install_packages
    look_for_packages
    for package in ${missing[@]+"${missing[@]}"}; do
        # The header belongs to Debian's own Python; without it the planner's Python search is used.
        [[ "$package" == python3-dev ]] && [[ ${#missing[@]} -eq 1 ]] && continue
        fail "'$package' is installed, and yet what it is for does not work" "see $log" \
            "another interpreter can be chosen: PYTHON=/usr/bin/python3 make $level"
    done
fi

# --- The virtual environment -----------------------------------------------------------------------------

rm -f ".venv/.ready-$level"
if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
    say "creating the virtual environment in .venv"
    logged "$python" -m venv --clear .venv || fail "'$python -m venv .venv' failed" "see $log"
fi
pip=(.venv/bin/python -m pip --disable-pip-version-check --quiet)
say "installing the Python packages of $lock (the first time takes a minute or two)"
logged "${pip[@]}" install --no-deps --requirement "$lock" ||
    fail "the Python packages could not be installed" "see $log"
rm -f src/bytewright/plan/_native*.so # one of another name would be taken in place of the new one
logged "${pip[@]}" install --no-deps --no-build-isolation --editable . ||
    fail "Bytewright itself could not be installed" "see $log"
# As pip does for every other package; where Python is told not to write byte code, each command gains 0.3 s.
logged .venv/bin/python -m compileall -q src || fail "the sources do not compile" "see $log"
logged .venv/bin/python -m pip --disable-pip-version-check check ||
    fail "$lock does not agree with itself" "see $log"
if ! .venv/bin/python -c 'import bytewright.plan._native' 2>/dev/null; then
    say "the planner's native core could not be built: the slower search in Python is used"
fi
fingerprint "$level" >".venv/.ready-$level"
say "ready"
