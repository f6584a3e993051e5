#!/bin/bash
# Goal: what Tab offers after `fopctl ...`.
# Method: call the completion function as bash would, and compare COMPREPLY.
set -u

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=scripts/completion/fopctl.bash
source "$source_dir/scripts/completion/fopctl.bash"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
touch "$scratch/admin.sock"
mkdir "$scratch/sockets dir"

failures=0

# completes <expected words> <word>... : the last word is the one being typed.
completes() {
    local expected=$1
    shift
    COMP_WORDS=(fopctl "$@")
    COMP_CWORD=$#
    COMPREPLY=()
    _fopctl
    if [[ "${COMPREPLY[*]-}" != "$expected" ]]; then
        echo "fopctl $*<Tab>: got '${COMPREPLY[*]-}', expected '$expected'" >&2
        failures=$((failures + 1))
    fi
}

completes "status top reload drain log-level" ""
completes "reload" re
completes "" nonsense
completes "--admin --json --quiet --timeout --version --help" --
completes "--json" --j
completes "status top reload drain log-level" --json ""
completes "log-level" --timeout 5 l
completes "" --timeout ""
completes "trace debug info warn error" log-level ""
completes "warn" log-level w
completes "info" --admin "$scratch/admin.sock" log-level i
completes "" log-level info ""
completes "--interval" top --i
completes "" top --count ""
completes "" status --i
completes "" status ""
completes "--quiet" status --q
completes "$scratch/admin.sock" --admin "$scratch/ad"
completes "$scratch/sockets dir" status --admin "$scratch/so"

if [[ $(complete -p fopctl) != "complete -F _fopctl fopctl" ]]; then
    echo "fopctl has no completion" >&2
    failures=$((failures + 1))
fi

exit $((failures > 0))
