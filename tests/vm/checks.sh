# shellcheck shell=bash
# Checks facts in a guest, and counts them. Sourced by its tests.

passed=0
failed=0

# check FACT COMMAND...: the fact holds if the command succeeds. A failure shows what it wrote and the journal's end.
check() {
    local fact=$1 output
    shift
    if output=$("$@" 2>&1); then
        passed=$((passed + 1))
        echo "ok       $fact"
    else
        failed=$((failed + 1))
        echo "FAILED   $fact: $*"
        { echo "$output" && journalctl --boot --unit fopd --lines 15 --no-hostname; } | sed 's/^/    /'
    fi
}

skip() {
    echo "skipped  $1: $2"
}

# is EXPECTED COMMAND...: the command writes just that.
is() {
    local expected=$1 actual
    shift
    actual=$("$@")
    [[ $actual == "$expected" ]] || { echo "expected: $expected, actual: $actual" && return 1; }
}

# exits STATUS COMMAND...
exits() {
    local expected=$1 actual=0
    shift
    "$@" || actual=$?
    ((actual == expected)) || { echo "expected exit $expected, was $actual" && return 1; }
}

# soon SECONDS COMMAND...: the command succeeds within that time.
soon() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        sleep 0.2
    done
}

gone() {
    [[ ! -e $1 ]]
}

# The last line of a story; its status is that of the story.
summarise() {
    echo "$passed passed, $failed failed"
    ((passed > 0 && failed == 0))
}
