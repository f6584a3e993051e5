# bash completion for fopctl.
# Verbs, options and what a verb takes are those of the help pages. Names of disks, rules, principals, pools and objects
# come from the daemon, with the options that were typed already.

# _fopctl_help WORD...: the entries of a help page: kind, name, VALUE if it takes one, and description, with tabs between.
_fopctl_help() {
    fopctl "$@" --help 2>/dev/null | awk '
        /^[A-Z].*:$/ { kind = $0 == "Options:" ? "option" : $0 == "Positionals:" ? "positional" : "verb" }
        /^$/ { kind = "" }
        /^  [^ ]/ && kind != "" {
            print kind "\t" $1 "\t" ($2 == "VALUE" ? "VALUE" : "") "\t" substr($0, 29)
        }
        /^Usage:/ && /\.\.\.\]?$/ { print "many\t\t\t" }'
}

# _fopctl_ask VERB...: what the daemon answers. Nothing if it does not answer soon.
_fopctl_ask() {
    fopctl --timeout 2 "${typed[@]}" "$@" 2>/dev/null
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
    done < <(_fopctl_ask ls -- "$current" | head --lines=50)
}

# The keys of the section io_sched that the daemon has, but for those that need a restart.
_fopctl_io_sched_keys() {
    _fopctl_ask io-sched show | sed --quiet --expression '/^latency_goal=\|^depth_max=/d' --expression 's/^\([a-z._]*=\).*/\1/p'
}

_fopctl_rules() {
    _fopctl_ask lrs rule list | sed --quiet 's/^\([^# ][^ ]*\) .*/\1/p'
}

# Keys of the section lrs, and of the policy that was named; no value of theirs.
_fopctl_lrs_words() {
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
    echo "${words// /$'\n'}"
}

# _fopctl_entries KIND: the names of the verbs, options or positionals of the pages read so far, each once.
_fopctl_entries() {
    local line name
    for line in "${page[@]}"; do
        [[ $line == "$1"$'\t'* ]] || continue
        name=${line#*$'\t'}
        name=${name%%$'\t'*}
        printf '%s\n' "${name##*,}"
    done | awk '!seen[$0]++'
}

# _fopctl_has PATTERN: a line of the pages read so far is like it.
_fopctl_has() {
    local line
    for line in "${page[@]}"; do
        # shellcheck disable=SC2053  # It is a pattern.
        [[ $line != $1 ]] || return 0
    done
    return 1
}

# _fopctl_offer COMMAND WORD...: a line of the command's output is one candidate. Names come from the server, and the shell
# must not expand them.
_fopctl_offer() {
    local candidate
    while IFS= read -r candidate; do
        [[ $candidate != "$current"* ]] || COMPREPLY+=("$(printf '%q' "$candidate")")
    done < <("$@")
}

_fopctl_offer_words() {
    _fopctl_offer printf '%s\n' "$@"
}

_fopctl_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
}

_fopctl() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local typed=() verb=() page=() positionals=() option="" first="" count=0 word index
    COMPREPLY=()
    mapfile -t page < <(_fopctl_help)
    for ((index = 1; index < COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        if [[ -n $option ]]; then
            [[ $option != --@(admin|server|key|token|protect|principals) ]] || typed+=("$option" "$word")
            option=""
        elif [[ $word == -* ]]; then
            ! _fopctl_has $'option\t?(*,)'"$word"$'\tVALUE*' || option=$word
        elif _fopctl_has $'verb\t'"$word"$'\t*'; then
            verb+=("$word")
            # The options of all verbs stay.
            mapfile -t page < <(printf '%s\n' "${page[@]}" | grep $'^option\t' && _fopctl_help "${verb[@]}")
        else
            first=${first:-$word}
            ((++count))
        fi
    done

    case $option in
        "") ;;
        --admin | --key | --token | --principals | --config | --out | --public | --issuer | --rules) _fopctl_files ;;
        --op) _fopctl_offer_words echo bulk_echo ping read write mixed create ;;
        --wait) _fopctl_offer_words ready ;;
        --protect) _fopctl_offer_words seal encrypt ;;
        --color) _fopctl_offer_words auto always never ;;
        --pool) _fopctl_offer _fopctl_json pool df ;;
        --principal) _fopctl_offer _fopctl_json name key list ;;
        --medium) _fopctl_offer _fopctl_json name media ;;
        --object) mapfile -t COMPREPLY < <(_fopctl_objects) ;;
    esac
    if [[ -n $option ]]; then return; fi
    if [[ $current == -* ]]; then
        _fopctl_offer _fopctl_entries option
        return
    fi
    if _fopctl_has $'verb\t*'; then
        _fopctl_offer _fopctl_entries verb
        return
    fi

    mapfile -t positionals < <(_fopctl_entries positional)
    ((${#positionals[@]} > 0)) || return
    if ((count >= ${#positionals[@]})) && _fopctl_has $'many\t*'; then count=$((${#positionals[@]} - 1)); fi
    case "${verb[*]}:${positionals[count]-}" in
        *:device) _fopctl_offer _fopctl_json name devices ;;
        *:cartridge | *:medium) _fopctl_offer _fopctl_json name media ;;
        *:drive) _fopctl_offer _fopctl_json name drives ;;
        *:file | *:directory | "token revoke:token") _fopctl_files ;;
        "key revoke:name") _fopctl_offer _fopctl_json name key list ;;
        "key create:name") ;;
        "lrs rule del:name" | "lrs rule change:rule") _fopctl_offer _fopctl_rules ;;
        *:name | *:old | *:prefix) mapfile -t COMPREPLY < <(_fopctl_objects) ;;
        "log-level:level") _fopctl_offer_words trace debug info warn error ;;
        "io-sched set:words" | "lrs set:words")
            [[ $current != *=* && $previous != "=" ]] || return
            if [[ ${verb[0]} == lrs ]]; then _fopctl_offer _fopctl_lrs_words; else _fopctl_offer _fopctl_io_sched_keys; fi
            [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
            ;;
    esac
}

complete -F _fopctl fopctl
