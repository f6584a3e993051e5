#!/bin/bash
# Goal: what Tab offers after `fopctl ...` in bash.
# Method: call the completion function as bash would, and compare COMPREPLY, in any order. The help pages are those of the real
#         program; everything else is answered here as a daemon does.
#
#   completion_test.sh FOPCTL
set -u

program=$1
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=scripts/completion/fopctl.bash
source "$source_dir/scripts/completion/fopctl.bash"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
touch "$scratch/admin.sock"
mkdir "$scratch/sockets dir" "$scratch/answers"
"$source_dir/tests/packaging/page_answers.py" "$scratch/answers" || exit 1

# Answers as a daemon with two disks, two rules, two principals and three objects does.
fopctl() {
    if [[ " $* " == *" --help "* ]]; then
        local answer="$scratch/answers/$*"
        [[ -e $answer ]] || "$program" "$@" >"$answer"
        cat "$answer"
        return
    fi
    echo "$*" >>"$scratch/asked"
    case " $* " in
        *" devices "*) cat "$scratch/answers/devices.json" ;;
        *" media "*) cat "$scratch/answers/media.json" ;;
        *" drives "*) cat "$scratch/answers/drives.json" ;;
        *" df "*) cat "$scratch/answers/df.json" ;;
        *" key list "*) cat "$scratch/answers/keys.json" ;;
        *" rule list "*) printf '%s\n' '# rules of tbf, version 1795704011902' 'ann principal=ann rate=5/s' 'default * rate=unlimited' ;;
        *" lrs show --all "*) cat "$scratch/answers/lrs.txt" ;;
        *" io-sched show "*) printf '%s\n' 'read_algo=fifo' 'depth_max=128' 'tape.read_algo=fifo' ;;
        *" ls -- a "*) printf '%s\n' abc 'a b' ;;
        *" ls -- job:"*) printf '%s\n' job:read job:write ;;
        *" ls -- two"*) printf '%s\n' 'two words:x' ;;
        *" ls -- bell"*) printf '%s\n' bell1 $'bell\a2' ;;
        *" ls -- - "*) printf '%s\n' -rf ;;
        *" ls --pool slow -- "*) printf '%s\n' cold ;;
        *" ls "*) printf '%s\n' abc 'a b' x ;;
    esac
}

failures=0

# The words of a line in one order. A blank behind a backslash belongs to its word.
sorted() {
    sed 's/\([^\\]\) /\1\n/g' | LC_ALL=C sort | paste -sd,
}

# completes <expected words> <word>... : the last word is the one being typed; quotes and the like are as they are typed.
completes() {
    local expected actual
    expected=$(sorted <<<"$1")
    shift
    COMP_LINE="fopctl $*"
    COMP_POINT=${#COMP_LINE}
    COMPREPLY=()
    _fopctl
    actual=$(sorted <<<"${COMPREPLY[*]-}")
    if [[ $actual != "$expected" ]]; then
        echo "fopctl $*<Tab>: got '$actual', expected '$expected'" >&2
        failures=$((failures + 1))
    fi
}

completes "put get read write append ls stat mv rm truncate punch chmod chown sync df quota mirror stage release queue cancel media drives format load unload export import drive repack rescue batch shell ping bench status health top sessions devices device scrub store lrs epoch io-sched trace reload drain log-level keygen key token" ""
completes "read release repack rescue reload" re
completes "chmod chown" ch
completes "--pool" chmod 640 --po
completes "abc a\\ b x" chown ada:staff ""
completes "abc a\\ b x" stage --pin 3d ""
completes "--priority" stage --pri
completes "A00001L9 A00002L9" export ""
completes "A00001L9 A00002L9" import ""
completes "--yes" export A00001L9 --y
completes "--unload" drain --u
completes "export" ex
completes "import" im
completes "--show" repack V00001L9 --sh
completes "--pool" rescue V00001L9 --po
completes "A00001L9 A00002L9" load ""
completes "vtl0-drive0 vtl0-drive1" load A00001L9 ""
completes "" load A00001L9 vtl0-drive0 ""
completes "vtl0-drive1" unload vtl0-drive1
completes "--force" format A00001L9 --f
completes "--yes" format A00001L9 --force --y
completes "" nonsense
completes "--server --key --token --protect --job --admin --json --quiet --wide --color --timeout --version --help" --
completes "--job --json" --j
completes "put get read write append ls stat mv rm truncate punch chmod chown sync df quota mirror stage release queue cancel media drives format load unload export import drive repack rescue batch shell ping bench status health top sessions devices device scrub store lrs epoch io-sched trace reload drain log-level keygen key token" --json ""
completes "load log-level" --timeout 5 lo
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
completes "bench" --server tcp://127.0.0.1:1 --key "$scratch/admin.sock" be
completes "echo" bench --op e
completes "--server --size --seconds" bench --json --s
completes "--op --object --object-size" bench --depth 4 --o
completes "--explain" bench --e
completes "--slow" trace --sl
completes "--missing" ls --m
completes "create list revoke" key ""
completes "revoke" token r
completes "" key list ""
completes "add remove forget" device ""
completes "down up" drive ""
completes "forget" device f
completes "--server --slot" device forget --s
completes "--yes" device forget --slot 2 --y
completes "" device forget --slot ""
completes "remove" device r
completes "devices device" devi
completes "d0 d1" device remove ""
completes "" device remove d0 ""
completes "d1" scrub d1
completes "d0 d1" store check ""
completes "A00001L9 A00002L9" scrub --medium ""
completes "vtl0-drive0 vtl0-drive1" drive down ""
completes "vtl0-drive1" drive up vtl0-drive1
completes "" drive down vtl0-drive0 ""
completes "ann bob" token create --principal ""
completes "abc a\\ b" token create --object a
completes "cluster_interval= cut_off=" lrs set tbf c
completes "fast" ls --pool f
completes "ann default" lrs rule change ""
completes "default" lrs rule del d
completes "bob" key revoke b
completes "abc a\\ b" get a
completes "abc a\\ b" rm x a
completes "abc a\\ b" rm -r --yes a
completes "abc a\\ b" put --recursive "$scratch" a
completes "$scratch/admin.sock" get -r abc "$scratch/ad"
completes "--color --collection" put --col
completes "" put --collection ""
completes "--color --collection" mirror put --col
completes "--recursive" put --rec
completes "--admin --all" rm -r --a
completes "--yes" rm --ye
completes "--dry-run" get -r --d
completes "put get" mirror ""
completes "$scratch/admin.sock" batch --keep-going "$scratch/ad"
completes "--key --keep-going" batch --ke
completes "$scratch/admin.sock" mirror put "$scratch/ad"
completes "abc a\\ b" mirror put --delete "$scratch" a
completes "abc a\\ b" mirror get a
completes "$scratch/admin.sock" mirror get abc "$scratch/ad"
completes "--delete --dry-run" mirror put --d
completes "--max-delete" mirror get --max
completes "" mirror get --delete --max-delete ""
completes "abc a\\ b" rm -r --dry-run a
completes "abc a\\ b x" chmod 640 ""
completes "" mv x ""
completes "d0 d1" --admin "$scratch/admin.sock" scrub ""
grep --quiet -- "--admin $scratch/admin.sock" "$scratch/asked" || {
    echo "the typed --admin is not used to ask" >&2
    failures=$((failures + 1))
}
completes "check backup" store ""
completes "show set which save rule" lrs ""
completes "show set save" lrs s
completes "crr deadline delay epoch_groups fifo mclock orr tbf trr max_foms= io_wait_goal= quantum= by=" lrs set ""
completes "max_foms= io_wait_goal= quantum= by=" lrs set max_foms=4 ""
completes "max_foms= io_wait_goal= quantum= by=" lrs set crr ""
completes "max_foms= io_wait_goal=" lrs set fifo ""
completes "at_end=" lrs set epoch_groups at
completes "policy=" lrs set deadline max_foms=4 p
completes "max_foms=" lrs set max
completes "" lrs set crr quantum=
completes "" lrs set crr quantum=1
completes "tbf trr" lrs set t
completes "show set" io-sched ""
completes "read_algo= tape.read_algo=" io-sched set ""
completes "tape.read_algo=" io-sched set read_algo=fifo ta
completes "" io-sched set read_algo=
completes "list load" lrs --json rule l
completes "--rules" lrs set mclock --ru
completes "--if-version" lrs rule add --i
completes "" lrs rule add --if-version ""
completes "" lrs rule list --i
completes "$scratch/admin.sock" lrs rule load "$scratch/ad"
completes "--server --show" store check --s
completes "$scratch/admin.sock" store backup "$scratch/ad"
completes "--rights" key create name --r
completes "--delegate" key --json create --d
completes "--protect --principals" key list --p
completes "--issuer" token create --i
completes "--fid" token create --f
completes "$scratch/admin.sock" get --token "$scratch/ad"
completes "$scratch/admin.sock" keygen "$scratch/ad"
completes "$scratch/admin.sock" --admin "$scratch/ad"
completes "$scratch/sockets dir" status --admin "$scratch/so"

# bash replaces what follows the last : or =.
completes "fast" ls --pool=f
completes "seal encrypt" --protect=
completes "d0 d1" --timeout=5 device remove ""
completes "$scratch/admin.sock" status --admin="$scratch/ad"
completes "read write" stat job:
completes "read" stat job:r
completes "job:read" stat 'job\:r'
completes "job:read" stat '"job:r'
completes "job:read" stat "'job:r"
completes "two\\ words:x" stat two
completes "two words:x" stat '"two w'
completes "two words:x" stat "'two w"
completes "x" stat 'two\ words:'
completes "x" stat '"two words":'
completes ":x" stat '"two words"'
# What controls a terminal is quoted so that it does not, or not offered.
completes "bell1 \$'bell\\a2'" stat bell
completes "bell1" stat '"bell'
completes "bell1" stat "'bell"
# What is not typed yet may begin with a -.
completes "abc a\\ b x" rm -- ""
completes "-rf" rm -- -
completes "abc a\\ b x" rm ""
completes "abc a\\ b x" put - ""

# asks WORD LINE: the program is asked with this word of the line, as it gets it from the shell.
asks() {
    local word=$1
    shift
    : >"$scratch/asked"
    COMP_LINE="fopctl $*"
    COMP_POINT=${#COMP_LINE}
    _fopctl
    grep --quiet --fixed-strings -- " --admin $word --json devices" "$scratch/asked" || {
        echo "fopctl $*<Tab>: asked '$(cat "$scratch/asked")', not with $word" >&2
        failures=$((failures + 1))
    }
}

asks "$HOME/a b" '--admin ~/"a b" device remove '
asks "$HOME/a b" "--admin ~/a\\ b device remove "
# shellcheck disable=SC2088  # These are names as they are typed.
asks "~/a" '--admin "~/a" device remove '
# shellcheck disable=SC2016
asks '$HOME' "--admin '\$HOME' device remove "
asks "/a:b=c" '--admin=/a:b=c device remove '

# Objects of the pool that was typed.
completes "cold" get --pool slow c
completes "cold" get --pool=slow c

# A server may call its pools as it likes.
# shellcheck disable=SC2016  # It is a name.
printf '{"pools":[{"pool":"$(touch %s/ran)"},{"pool":"two words"}]}\n' "$scratch" >"$scratch/answers/df.json"
completes "two\\ words" put --pool tw
completes "\\$\\(touch\\ $scratch/ran\\)" put --pool '$'
if [[ -e $scratch/ran ]]; then
    echo "the name of a pool was run as a command" >&2
    failures=$((failures + 1))
fi

if [[ $(complete -p fopctl) != "complete -F _fopctl fopctl" ]]; then
    echo "fopctl has no completion" >&2
    failures=$((failures + 1))
fi

exit $((failures > 0))
