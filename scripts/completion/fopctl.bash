# bash completion for fopctl.
# A new verb is one word in `verbs`; its own options and arguments are a case below each.
# Names of disks, rules, principals, pools and objects come from the daemon, with the options that were typed already.

# _fopctl_ask VERB...: what the daemon answers. Nothing if it does not answer soon.
_fopctl_ask() {
    local typed=() index
    for ((index = 1; index < COMP_CWORD - 1; index++)); do
        case ${COMP_WORDS[index]} in
            --admin | --server | --key | --token | --protect | --principals)
                typed+=("${COMP_WORDS[index]}" "${COMP_WORDS[index + 1]}")
                ;;
        esac
    done
    fopctl --timeout 2 "$@" "${typed[@]}" 2>/dev/null
}

# _fopctl_json FIELD VERB...: the values of a field of the objects in the answer.
_fopctl_json() {
    local field=$1
    shift
    _fopctl_ask --json "$@" | grep --only-matching "\"$field\":\"[^\"]*\"" | cut --delimiter='"' --fields=4 | sort --unique
}

# The objects whose names begin with the word, as many as fit on a screen. Names are quoted for the shell.
_fopctl_objects() {
    local name
    while IFS= read -r name; do
        printf '%q\n' "$name"
    done < <(_fopctl_ask ls "$1" | head --lines=50)
}

# The keys of the section io_sched that the daemon has, but for those that need a restart.
_fopctl_io_sched_keys() {
    _fopctl_ask io-sched show | sed --quiet --expression '/^latency_goal=\|^depth_max=/d' --expression 's/^\([a-z._]*=\).*/\1/p'
}

_fopctl() {
    local current=${COMP_WORDS[COMP_CWORD]}
    local previous=${COMP_WORDS[COMP_CWORD - 1]}
    local global_options="--server --key --token --protect --job --admin --json --quiet --wide --color --timeout --version --help"
    local verbs="put get read write append ls stat mv rm truncate punch chmod chown sync df quota mirror stage release queue cancel media drives format load unload export import drive repack rescue batch shell ping bench status health top sessions devices device scrub store lrs epoch io-sched trace reload drain log-level keygen key token"
    COMPREPLY=()

    # The argument of an option.
    case $previous in
        --admin | --key | --token | --principals | --config | --out | --public | --issuer | --rules)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            return
            ;;
        --op)
            mapfile -t COMPREPLY < <(compgen -W "echo bulk_echo ping read write mixed create" -- "$current")
            return
            ;;
        --color)
            mapfile -t COMPREPLY < <(compgen -W "auto always never" -- "$current")
            return
            ;;
        --wait)
            mapfile -t COMPREPLY < <(compgen -W "ready" -- "$current")
            return
            ;;
        --pool)
            mapfile -t COMPREPLY < <(compgen -W "$(_fopctl_json pool df)" -- "$current")
            return
            ;;
        --protect)
            mapfile -t COMPREPLY < <(compgen -W "seal encrypt" -- "$current")
            return
            ;;
        --medium)
            mapfile -t COMPREPLY < <(compgen -W "$(_fopctl_json name media)" -- "$current")
            return
            ;;
        --principal)
            mapfile -t COMPREPLY < <(compgen -W "$(_fopctl_json name key list)" -- "$current")
            return
            ;;
        --object)
            mapfile -t COMPREPLY < <(_fopctl_objects "$current")
            return
            ;;
        --server | --job | --timeout | --interval | --count | --size | --depth | --jobs | --seconds | \
            --rights | --groups | --quota | --expires | --generation | --group | --collection | --offset | --length | \
            --object-size | --fid | --if-version | --slot | --max-delete | --pin | --priority)
            return
            ;;
    esac

    # The verb is the first word that is neither an option nor an option's argument; for some, the first two or three.
    local verb="" arguments=0 first="" index word
    for ((index = 1; index < COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        case $word in
            --json | --quiet | --wide | --delegate | --version | --help | --no-replace | --buffered | --long | --durable | --end | --show | --yes | --all | --explain | --slow | --missing | -r | --recursive | --dry-run | --size-only | --no-skip | --delete | --keep-going | --force) ;;
            --*=*) ;;
            -*) ((index++)) ;;
            *)
                if [[ -z $verb ]]; then
                    verb=$word
                elif [[ $verb == key || $verb == token || $verb == device || $verb == drive || $verb == store || $verb == mirror || $verb == lrs || $verb == epoch || $verb == io-sched || $verb == "lrs rule" ]]; then
                    verb+=" $word"
                else
                    first=${first:-$word}
                    ((arguments++))
                fi
                ;;
        esac
    done

    if [[ $current == -* ]]; then
        local options=$global_options
        case $verb in
            status) options+=" --wait" ;;
            top | ping) options+=" --interval --count" ;;
            bench) options+=" --op --size --depth --jobs --seconds --durable --pool --object --object-size --explain" ;;
            trace) options+=" --slow" ;;
            put) options+=" --pool --group --collection --no-replace --recursive --size-only --no-skip --dry-run --explain" ;;
            read) options+=" --pool --offset --length --explain" ;;
            punch) options+=" --pool --offset --length" ;;
            write) options+=" --pool --offset --buffered" ;;
            ls) options+=" --pool --long --missing --fid" ;;
            stat) options+=" --pool --fid" ;;
            mv) options+=" --pool --no-replace" ;;
            get) options+=" --pool --recursive --size-only --no-skip --dry-run --explain" ;;
            batch) options+=" --keep-going" ;;
            "mirror put") options+=" --pool --group --collection --delete --max-delete --size-only --no-skip --dry-run" ;;
            "mirror get") options+=" --pool --delete --max-delete --size-only --no-skip --dry-run" ;;
            rm) options+=" --pool --recursive --dry-run --yes --all" ;;
            append | truncate | chmod | chown | sync | df | quota | release | cancel) options+=" --pool" ;;
            stage) options+=" --pool --pin --priority" ;;
            drain) options+=" --unload" ;;
            export) options+=" --yes" ;;
            repack) options+=" --show --end" ;;
            rescue) options+=" --all --pool --show --end" ;;
            scrub) options+=" --end --show --medium --pool" ;;
            format) options+=" --pool --force --yes" ;;
            "device forget") options+=" --slot --yes" ;;
            "epoch force") options+=" --yes" ;;
            "store check") options+=" --end --show" ;;
            "lrs rule add" | "lrs rule change" | "lrs rule del" | "lrs rule load") options+=" --if-version" ;;
            "lrs set") options+=" --rules" ;;
            keygen) options+=" --public" ;;
            "key create") options+=" --rights --groups --quota --delegate --principals --config --out" ;;
            "key list" | "key revoke" | "token revoke") options+=" --principals --config" ;;
            "token create") options+=" --issuer --rights --principal --pool --object --fid --expires --generation --out" ;;
        esac
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
        return
    fi
    # The file of `get` stands behind the name.
    if [[ $verb == ?(mirror\ )put && $arguments == 0 ]] || [[ $verb == ?(mirror\ )get && $arguments == 1 ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
    fi
    # Keys of the section, and of the policy that was named; no value of theirs.
    if [[ $verb == "lrs set" && $current != *=* && $previous != "=" ]]; then
        local words="max_foms= io_wait_goal="
        case $first in
            "") words="crr deadline delay epoch_groups fifo mclock orr tbf trr $words" ;;
            crr) words+=" quantum= by=" ;;
            deadline) words+=" policy= wait_max=" ;;
            delay) words+=" min= max= percent=" ;;
            epoch_groups) words+=" length= at_end= others= rules=" ;;
            mclock) words+=" capacity= cost_unit= rules=" ;;
            orr | trr) words+=" quantum= ops= offsets=" ;;
            tbf) words+=" cluster_interval= cut_off= rules=" ;;
        esac
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
        [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null
        return
    fi
    if [[ $verb == "io-sched set" && $current != *=* && $previous != "=" ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_fopctl_io_sched_keys)" -- "$current")
        compopt -o nospace 2>/dev/null
        return
    fi
    case $verb:$arguments in
        get:0 | "mirror get:0" | "mirror put:1" | read:0 | write:0 | append:0 | stat:0 | mv:0 | truncate:0 | punch:0 | chmod:1 | chown:1 | rm:* | sync:* | put:1 | stage:* | release:* | cancel:*)
            mapfile -t COMPREPLY < <(_fopctl_objects "$current")
            return
            ;;
    esac
    if [[ $verb:$arguments == load:1 || $verb:$arguments == unload:0 || $verb:$arguments == drive\ @(down|up):0 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_fopctl_json name drives)" -- "$current")
        return
    fi
    ((arguments == 0)) || return
    case $verb in
        "device add" | "device remove" | "device forget" | scrub | "store check")
            mapfile -t COMPREPLY < <(compgen -W "$(_fopctl_json name devices)" -- "$current")
            ;;
        format | load | export | import | repack | rescue)
            mapfile -t COMPREPLY < <(compgen -W "$(_fopctl_json name media)" -- "$current")
            ;;
        "lrs rule change" | "lrs rule del")
            mapfile -t COMPREPLY < <(compgen -W "$(_fopctl_ask lrs rule list | sed --quiet 's/^\([^# ][^ ]*\) .*/\1/p')" -- "$current")
            ;;
        "key revoke")
            mapfile -t COMPREPLY < <(compgen -W "$(_fopctl_json name key list)" -- "$current")
            ;;
        "") mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$current") ;;
        log-level) mapfile -t COMPREPLY < <(compgen -W "trace debug info warn error" -- "$current") ;;
        mirror) mapfile -t COMPREPLY < <(compgen -W "put get" -- "$current") ;;
        key) mapfile -t COMPREPLY < <(compgen -W "create list revoke" -- "$current") ;;
        token) mapfile -t COMPREPLY < <(compgen -W "create revoke" -- "$current") ;;
        device) mapfile -t COMPREPLY < <(compgen -W "add remove forget" -- "$current") ;;
        drive) mapfile -t COMPREPLY < <(compgen -W "down up" -- "$current") ;;
        lrs) mapfile -t COMPREPLY < <(compgen -W "show set which save rule" -- "$current") ;;
        epoch) mapfile -t COMPREPLY < <(compgen -W "force show" -- "$current") ;;
        io-sched) mapfile -t COMPREPLY < <(compgen -W "show set" -- "$current") ;;
        "lrs rule") mapfile -t COMPREPLY < <(compgen -W "list add change del load" -- "$current") ;;
        store) mapfile -t COMPREPLY < <(compgen -W "check backup" -- "$current") ;;
        batch | keygen | "store backup" | "lrs rule load")
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            ;;
    esac
}

complete -F _fopctl fopctl
