#!/bin/bash
# Goal: a failure in the simulated world prints its seed, its commit, and a command that fails in the same way.
# Method: runs a test that fails on purpose, then the command it printed.
#
#   replay_test.sh <test_sim>
set -u

printed=$("$1" '[replay]' 2>&1) && echo "the test that is to fail did not" >&2 && exit 1
if ! grep -q '^seed=7 commit=[0-9]' <<<"$printed"; then
    printf 'no seed or no commit in:\n%s\n' "$printed" >&2
    exit 1
fi
command=$(sed -n 's/^replay: //p' <<<"$printed")
again=$(bash -c "$command")
if [[ $command != "FOPD_SEED=7 "* || $again != *"assertions: 1 | 1 failed"* ]]; then
    printf 'the command "%s" did not fail again but printed:\n%s\n' "$command" "$again" >&2
    exit 1
fi
