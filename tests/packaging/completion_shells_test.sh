#!/bin/bash
# Goal: what Tab offers after `fopctl ...` is the same in bash, zsh and fish.
# Method: each runs its completion on a command line, zsh with functions in place of those that show candidates. The help
#         pages are those of the real program; for everything else a stand-in answers as a daemon does.
# Exits 77 (skipped) where zsh or fish is missing.
#
#   completion_shells_test.sh FOPCTL
set -u

fopctl=$1
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
completion=$source_dir/scripts/completion
for shell in zsh fish; do
    if ! command -v "$shell" >/dev/null; then
        echo "skipped: $shell is not installed" >&2
        exit 77
    fi
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/functions" "$scratch/files" "$scratch/answers"
"$source_dir/tests/packaging/page_answers.py" "$scratch/answers" || exit 1
export FOPCTL_OF_TEST=$fopctl ANSWERS=$scratch/answers ASKED=$scratch/asked HOME=$scratch XDG_CONFIG_HOME=$scratch XDG_DATA_HOME=$scratch
export PATH=$scratch/bin:$PATH
touch "$scratch/files/admin.sock"

# Two disks, two cartridges, two rules, two principals and three objects.
cat >"$scratch/bin/fopctl" <<'EOF'
#!/bin/bash
case " $* " in
    *" --help "*)
        [[ -e $ANSWERS/$* ]] || "$FOPCTL_OF_TEST" "$@" >"$ANSWERS/$*"
        exec cat "$ANSWERS/$*"
        ;;
esac
echo "$*" >>"$ASKED"
case " $* " in
    *" devices "*) cat "$ANSWERS/devices.json" ;;
    *" media "*) cat "$ANSWERS/media.json" ;;
    *" drives "*) cat "$ANSWERS/drives.json" ;;
    *" df "*) cat "$ANSWERS/df.json" ;;
    *" key list "*) cat "$ANSWERS/keys.json" ;;
    *" rule list "*) printf '%s\n' '# rules of tbf, version 1795704011902' 'ann principal=ann rate=5/s' 'default * rate=unlimited' ;;
    *" lrs show --all "*) cat "$ANSWERS/lrs.txt" ;;
    *" io-sched show "*) printf '%s\n' 'read_algo=fifo' 'depth_max=128' 'tape.read_algo=fifo' ;;
    *" ls -- a "*) printf '%s\n' abc 'a b' ;;
    *" ls -- job:"*) printf '%s\n' job:read job:write ;;
    *" ls -- - "*) printf '%s\n' -rf ;;
    *" ls --pool slow -- "*) printf '%s\n' cold ;;
    *" ls "*) printf '%s\n' abc 'a b' x ;;
esac
EOF
chmod +x "$scratch/bin/fopctl"

cat >"$scratch/complete.zsh" <<'EOF'
# The last word is the one that is being typed. Files have names without blanks here.
completion=$1
shift
words=(fopctl "$@")
CURRENT=$#words
PREFIX=$words[CURRENT]
compadd() {
    local -a offered
    [[ $1 != -S ]] || shift 2
    if [[ $1 == -a ]]; then offered=("${(@P)3}"); else offered=("${(@)@[2,-1]}"); fi
    offered=(${(M)offered:#$PREFIX*})
    (( $#offered == 0 )) || print -l -- $offered
}
_describe() {
    local -a offered
    offered=("${(@P)2}")
    compadd -- "${(@)offered%%:*}"
}
_files() { compadd -- $PREFIX*(N) }
source $completion
EOF

candidates_zsh() {
    zsh -f "$scratch/complete.zsh" "$completion/fopctl.zsh" "$@"
}

# shellcheck disable=SC2016  # It is fish that expands it.
candidates_fish() {
    local line=fopctl word
    for word in "$@"; do line+=" $word"; done
    line=$line fish --no-config --command 'source $argv[1]; complete --do-complete $line' "$completion/fopctl.fish" |
        cut --fields=1
}

failures=0

fail() {
    echo "$*" >&2
    failures=$((failures + 1))
}

candidates_bash() {
    # shellcheck disable=SC2016  # It is the other bash that expands it.
    bash --norc -c 'source "$1" && shift && COMP_LINE="fopctl $*" && COMP_POINT=${#COMP_LINE} && _fopctl
        printf "%s\n" "${COMPREPLY[@]}"' bash "$completion/fopctl.bash" "$@" | sed 's/\\ / /g'
}

# completes EXPECTED WORD...: the shells offer these, in any order, for the last of the words.
completes() {
    local expected=$1 shell actual
    shift
    for shell in bash zsh fish; do
        actual=$("candidates_$shell" "$@" | LC_ALL=C sort | paste -sd,)
        [[ $actual == "$expected" ]] || fail "$shell: fopctl $*<Tab>: got '$actual', expected '$expected'"
    done
}

completes "read,release,reload,repack,rescue" re
completes "chmod,chown" ch
completes "list,load" lrs rule l
completes "list,load" lrs --json rule l
completes "rule,save,set,show,which" lrs ""
completes "set,show" io-sched ""
completes "read_algo=,tape.read_algo=" io-sched set ""
completes "--job,--json" --j
completes "--pool,--principal,--protect" token create --p
completes "--recursive" rm --rec
completes "--delete" mirror put --del
completes "load,log-level" --timeout 5 lo
completes "" --timeout ""
completes "debug,error,info,trace,warn" log-level ""
completes "" log-level info ""
completes "" status ""
completes "ready" status --wait ""
completes "seal" --protect s
completes "echo" bench --op e
completes "d0,d1" device remove ""
completes "d1" scrub d1
completes "A00001L9,A00002L9" scrub --medium ""
completes "vtl0-drive0,vtl0-drive1" drive down ""
completes "ann,bob" token create --principal ""
completes "always,auto" --color a
completes "d0,d1" --admin "$scratch/files/admin.sock" store check ""
grep --quiet -- "--admin $scratch/files/admin.sock .*devices" "$ASKED" || fail "the typed --admin is not used to ask"
completes "A00001L9,A00002L9" load ""
completes "vtl0-drive0,vtl0-drive1" load A00001L9 ""
completes "A00001L9,A00002L9" export ""
completes "A00001L9,A00002L9" import ""
completes "A00001L9,A00002L9" rescue ""
completes "A00001L9,A00002L9" repack ""
completes "vtl0-drive0,vtl0-drive1" unload ""
completes "fast" ls --pool f
completes "ann,default" lrs rule change ""
completes "default" lrs rule del d
completes "bob" key revoke b
completes "" key create ""
completes "a b,abc" get a
completes "a b,abc" rm x a
completes "a b,abc,x" chmod 640 ""
completes "" mv x ""
completes "tbf,trr" lrs set t
completes "by=,crr,deadline,delay,epoch_groups,fifo,io_wait_goal=,max_foms=,mclock,orr,quantum=,tbf,trr" lrs set ""
completes "by=,io_wait_goal=,max_foms=,quantum=" lrs set max_foms=4 ""
completes "cluster_interval=,cut_off=" lrs set tbf c
completes "io_wait_goal=,max_foms=" lrs set fifo ""
completes "cold" get --pool=slow c
completes "cold" get --pool slow c
completes "a b,abc" rm -- a
completes "-rf" rm -- -
completes "a b,abc,x" put - ""
completes "d0,d1" --timeout=5 device remove ""
for words in "put" "get x" "mirror put" "mirror get x" "--admin" "--key" "token revoke" "store backup" "keygen --public"; do
    # shellcheck disable=SC2086  # These are words.
    completes "$scratch/files/admin.sock" $words "$scratch/files/ad"
done

# Each verb of the first help page, and each option of one.
completes "$("$fopctl" --help | sed -n '/^Objects:/,$s/^  \([a-z][a-z-]*\) .*/\1/p' | LC_ALL=C sort | paste -sd,)" ""
completes "$({ "$fopctl" --help && "$fopctl" ping --help; } | sed -n 's/^  [-a-z,]*\(--[a-z]*\) .*/\1/p' | LC_ALL=C sort -u |
    paste -sd,)" ping --

# Where the package has it, zsh finds it by itself.
cp "$completion/fopctl.zsh" "$scratch/functions/_fopctl"
# shellcheck disable=SC2016
found=$(zsh -f -c 'fpath=($1 $fpath); autoload -Uz compinit && compinit -u -D && print $_comps[fopctl]' zsh "$scratch/functions")
[[ $found == _fopctl ]] || fail "zsh has no completion for fopctl: '$found'"

exit $((failures > 0))
