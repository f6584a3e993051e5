#!/bin/bash
# Goal: the man pages render without a warning, and libfopd(3) names each function of the library, and no other.
# Method: man --warnings; a warning is output on stderr. Variants that wait have no line of their own. Exits 77 (skipped) where man is missing.
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

declared=$(sed -n 's/^FOPD_API .*\b\(fopd_[a-z_]*\)(.*/\1/p' "$source_dir/client/fopd.h" | grep -v '_wait$' | sort)
described=$(grep -o '^\.It Fn .*' "$source_dir/docs/man/libfopd.3" | grep -o 'fopd_[a-z_]*' | sort)
if [[ -z $declared || $declared != "$described" ]]; then
    diff <(echo "$declared") <(echo "$described") >&2
    echo "libfopd.3: its functions are not those of fopd.h" >&2
    failures=$((failures + 1))
fi
exit $((failures > 0))
