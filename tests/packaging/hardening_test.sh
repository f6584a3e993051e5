#!/bin/bash
# Goal: what is released is hardened: position-independent, no executable stack, all that the loader fills in read-only
#       before the program begins, stack protector, checked libc calls.
# Method: readelf on the programs and the library that are given.
# Exits 77 (skipped) where readelf is missing.
set -u
export LC_ALL=C

if ! command -v readelf >/dev/null; then
    echo "skipped: readelf is not installed" >&2
    exit 77
fi

failures=0

# has FILE WHAT PATTERN OPTION...: a line of readelf's answer matches.
has() {
    local file=$1 what=$2 pattern=$3
    shift 3
    if ! readelf --wide "$@" "$file" | grep --quiet --extended-regexp -- "$pattern"; then
        echo "$file: $what" >&2
        failures=$((failures + 1))
    fi
}

if (($# == 0)); then
    echo "no file was given" >&2
    exit 1
fi
for file in "$@"; do
    has "$file" "is not position-independent" '^ +Type: +DYN ' --file-header
    has "$file" "has an executable stack" '^ +GNU_STACK .* RW +0x' --program-headers
    has "$file" "has no read-only relocations" '^ +GNU_RELRO ' --program-headers
    has "$file" "is not bound when it is loaded" '\((FLAGS|FLAGS_1)\) .*(BIND_NOW|NOW)' --dynamic
    has "$file" "has no stack protector" ' __stack_chk_fail' --dyn-syms
    has "$file" "has no checked libc calls" ' __[a-z]+_chk(@| |$)' --dyn-syms
done
exit $((failures > 0))
