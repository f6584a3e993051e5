#!/bin/bash
# Goal: the man pages render without a warning.
# Method: man --warnings; a warning is output on stderr. Exits 77 (skipped) where man is missing.
set -u

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

if ! command -v man >/dev/null; then
    echo "skipped: man is not installed" >&2
    exit 77
fi

failures=0
for page in "$source_dir"/docs/man/*.[1-8]; do
    warnings=$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" 2>&1 >/dev/null)
    if [[ -n $warnings ]]; then
        printf '%s:\n%s\n' "$page" "$warnings" >&2
        failures=$((failures + 1))
    fi
done
exit $((failures > 0))
