#!/bin/bash
# Goal: systemd takes the unit, alone, with each drop-in and with all of them, finds nothing to complain about, and
#       rates its exposure at 2.5 or less. The stop timeout is above the drain timeout.
# Method: systemd-analyze verify and security --offline on copies whose programs and man pages need not be installed.
# Exits 77 (skipped) where systemd-analyze is missing or too old for --offline (before systemd 250).
set -u

exposure_max=25  # Tenths, as --threshold= takes it.

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
unit=$source_dir/systemd/fopd.service

version=$(systemd-analyze --version 2>/dev/null | sed -n '1s/^systemd \([0-9]*\).*/\1/p')
if [[ -z $version || $version -lt 250 ]]; then
    echo "skipped: needs systemd-analyze 250 or newer" >&2
    exit 77
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

fail() {
    echo "$*" >&2
    failures=$((failures + 1))
}

# check <name> [<drop-in>...]
check() {
    local name=$1
    shift
    local directory=$scratch/$name output
    mkdir -p "$directory/fopd.service.d"
    # /usr/bin/fopd and the pages may not be installed here; all other lines are checked as they are.
    sed -e 's|^\(Exec[A-Za-z]*=\)/usr/bin/fop[a-z]*|\1/bin/true|' -e '/^Documentation=/d' "$unit" \
        >"$directory/fopd.service"
    (($# == 0)) || cp "$@" "$directory/fopd.service.d/"

    if ! output=$(systemd-analyze verify --man=no "$directory/fopd.service" 2>&1); then
        fail "$name: verify failed"
    fi
    # An unknown key or class name is only a warning to systemd; to us it is an error. Other units may be at fault
    # for other lines.
    if grep fopd <<<"$output" >&2; then
        fail "$name: verify has complaints"
    fi

    if ! output=$(systemd-analyze security --no-pager --offline=true --threshold="$exposure_max" \
        "$directory/fopd.service" 2>&1); then
        grep -v '✓' <<<"$output" >&2
        fail "$name: exposure above $exposure_max tenths"
    fi
    echo "$name: $(tail -n 1 <<<"$output")"
}

check plain
for drop_in in "$source_dir"/systemd/drop-ins/*.conf; do
    check "$(basename "$drop_in" .conf)" "$drop_in"
done
check "all drop-ins" "$source_dir"/systemd/drop-ins/*.conf

stop_seconds=$(sed -n 's/^TimeoutStopSec=\([0-9]*\)s$/\1/p' "$unit")
# The default, as the sample file has it, which a test of daemon/ compares with the code.
drain_seconds=$(sed -n 's/^  drain_timeout: \([0-9]*\)s$/\1/p' "$source_dir/systemd/fopd.yaml")
if [[ -z $stop_seconds || -z $drain_seconds ]]; then
    fail "no TimeoutStopSec in seconds in the unit, or no drain_timeout in seconds in fopd.yaml"
elif ((stop_seconds <= drain_seconds)); then
    fail "TimeoutStopSec=${stop_seconds}s is not above the drain timeout of ${drain_seconds} s"
fi

exit $((failures > 0))
