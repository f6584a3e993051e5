# bash completion for fopctl.
# Verbs, options and what they take are those of the help pages. Names of disks, rules, principals, pools and objects, and
# the settings of policies come from the daemon, with the options that were typed already.

# _fopctl_help WORD...: the entries of a help page: kind, name, what its value is called, and description, with tabs between.
_fopctl_help() {
    fopctl "$@" --help 2>/dev/null | awk '
        /^[A-Z].*:$/ { kind = $0 == "Options:" ? "option" : $0 == "Positionals:" ? "positional" : "verb" }
        /^$/ { kind = "" }
        /^  [^ ]/ && kind != "" {
            fits = substr($0, 28, 1) ~ /^ ?$/  # A name that does not fit has the line to itself.
            split(fits ? substr($0, 1, 28) : $0, name, " ")
            print kind "\t" name[1] "\t" name[2] "\t" (fits ? substr($0, 29) : "")
        }
        /^Usage:/ && /\.\.\.\]?$/ { print "many\t\t\t" }'
}

# _fopctl_home WORD: the word, which begins with a ~ that is not quoted, with the directory that it stands for.
_fopctl_home() {
    local user=${1%%/*} home=$HOME
    user=${user#"~"}
    if [[ -n $user ]]; then home=$(getent passwd "$user" | cut --delimiter=: --fields=6); fi
    printf '%s\n' "${home:-"~$user"}${1#"~$user"}"
}

# Splits the line as the shell will, which bash itself does not: COMP_WORDS has quotes, and is split at : and =. Sets `words`
# to the words before the one that is typed, `current` to that word without its quotes, `quote` to the quote that is open,
# and `kept` to the length of the part of `current` that stays: bash replaces what follows the last : or =, or the quote.
_fopctl_split() {
    local line=${COMP_LINE:0:COMP_POINT} char next index is_begun="" has_tilde=""
    words=() current="" quote="" kept=0
    for ((index = 0; index < ${#line}; index++)); do
        char=${line:index:1} next=${line:index+1:1}
        if [[ $char == "\\" && $quote != "'" ]]; then
            is_begun=yes
            if [[ $quote == '"' && $next != [\"\\\$\`] ]]; then current+=$char; fi
            current+=$next
            ((++index))
        elif [[ -n $quote && $char == "$quote" ]]; then
            quote="" kept=${#current}
        elif [[ -n $quote ]]; then
            current+=$char
        elif [[ $char == [\"\'] ]]; then
            is_begun=yes quote=$char kept=${#current}
        elif [[ $char == [[:blank:]] ]]; then
            [[ -n $is_begun ]] || continue
            if [[ -n $has_tilde ]]; then current=$(_fopctl_home "$current"); fi
            words+=("$current")
            current="" kept=0 is_begun="" has_tilde=""
        else
            if [[ -z $is_begun && $char == "~" ]]; then has_tilde=yes; fi
            is_begun=yes
            current+=$char
            if [[ $COMP_WORDBREAKS == *"$char"* ]]; then kept=${#current}; fi
        fi
    done
}

# _fopctl_ask VERB...: what the daemon answers. Nothing if it does not answer soon.
_fopctl_ask() {
    fopctl --timeout 2 "${typed[@]}" "$@" 2>/dev/null
}

# _fopctl_json FIELD VERB...: the values of a field of the objects in the answer.
_fopctl_json() {
    local field=$1
    shift
    _fopctl_ask --json "$@" | grep --only-matching "\"$field\":\"[^\"\\\\]*\"" | cut --delimiter='"' --fields=4 | sort --unique |
        _fopctl_names
}

# The lines of standard input, without those that fopctl would take for options instead of names.
_fopctl_names() {
    if [[ -z $option$only_values ]]; then grep --invert-match '^-'; else cat; fi
}

# The objects whose names begin with the value, as many as fit on a screen.
_fopctl_objects() {
    _fopctl_ask ls "${of_pool[@]}" -- "${current#"$lead"}" | head --lines=50 | _fopctl_names
}

# The keys of the section io_sched that the daemon has, but for those that need a restart.
_fopctl_io_sched_keys() {
    _fopctl_ask io-sched show | sed --quiet --expression '/^latency_goal=\|^depth_max=/d' --expression 's/^\([a-z._]*=\).*/\1/p'
}

_fopctl_rules() {
    _fopctl_ask lrs rule list | sed --quiet 's/^\([^# ][^ ]*\) .*/\1/p' | _fopctl_names
}

# _fopctl_lrs_words [POLICY]: the keys of the section lrs and of the policy, which are in front of a = on the daemon's page.
# Without a policy, all policies and the keys of the one in force; with =, only these keys.
_fopctl_lrs_words() {
    _fopctl_ask lrs show --all | awk -v policy="$1" '
        /^CLASS/ { exit }
        NR == 1 { in_force = $2; sub(",", "", in_force); next }
        NR > 2 && !/^[a-z_]+:/ { next }
        {
            name = NR == 2 ? "" : substr($1, 1, length($1) - 1)
            if (name != "" && policy == "") print name
            if (name != "" && name != (policy ~ /^=?$/ ? in_force : policy)) next
            for (at = name == "" ? 1 : 2; at <= NF; at++) print substr($at, 1, index($at, "="))
        }'
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

# _fopctl_value KIND NAME: sets REPLY to what the value of this option or positional is called on the pages; to nothing if
# it takes none.
_fopctl_value() {
    local line
    REPLY=""
    for line in "${page[@]}"; do
        if [[ $line == "$1"$'\t'?(*,)"$2"$'\t'* ]]; then
            line=${line#*$'\t'*$'\t'}
            REPLY=${line%%$'\t'*}
            return
        fi
    done
}

# _fopctl_has TEXT: a line of the pages read so far begins with it.
_fopctl_has() {
    local line
    for line in "${page[@]}"; do
        [[ $line != "$1"* ]] || return 0
    done
    return 1
}

# _fopctl_offer COMMAND WORD...: a line of the command's output is one candidate. Names come from the server, and the shell
# must not expand them.
_fopctl_offer() {
    local candidate
    while IFS= read -r candidate; do
        candidate=$lead$candidate
        [[ $candidate == "$current"* ]] || continue
        # Within quotes nothing keeps the terminal from obeying these.
        if [[ -n $quote && $candidate == *[[:cntrl:]]* ]]; then continue; fi
        candidate=${candidate:kept}
        # shellcheck disable=SC2001  # & in a replacement has a meaning in some versions of bash.
        case $quote in
            "") [[ -z $candidate ]] || COMPREPLY+=("$(printf '%q' "$candidate")") ;;
            "'") COMPREPLY+=("${candidate//"'"/"'\\''"}") ;;
            # In these quotes nothing keeps the shell from taking ! for a part of its history.
            *) [[ $candidate == *!* ]] || COMPREPLY+=("$(sed 's/[\\"$`]/\\&/g' <<<"$candidate")") ;;
        esac
    done < <("$@")
}

_fopctl_offer_words() {
    _fopctl_offer printf '%s\n' "$@"
}

# bash quotes the names of files itself.
_fopctl_files() {
    local file
    compopt -o filenames 2>/dev/null
    while IFS= read -r file; do
        file=$lead$file
        COMPREPLY+=("${file:kept}")
    done < <(compgen -f -- "${current#"$lead"}")
}

# _fopctl_values NAME: candidates for a value that is called so on the pages. A name in small letters has the words that
# are allowed, with | between.
_fopctl_values() {
    case $1 in
        FILE) _fopctl_files ;;
        POOL) _fopctl_offer _fopctl_json pool df ;;
        PRINCIPAL) _fopctl_offer _fopctl_json name key list "${principals[@]}" ;;
        CARTRIDGE) _fopctl_offer _fopctl_json name media ;;
        OBJECT) _fopctl_offer _fopctl_objects ;;
        "" | *[!a-z_\|]*) ;;
        *) _fopctl_offer tr '|' '\n' <<<"$1" ;;
    esac
}

_fopctl() {
    local words current quote kept lead="" option="" only_values="" first="" count=0 word name REPLY
    local typed=() of_pool=() principals=() verb=() page=() positionals=()
    COMPREPLY=()
    _fopctl_split
    mapfile -t page < <(_fopctl_help)
    for word in "${words[@]:1}"; do
        name=${option:-${word%%=*}}
        if [[ -z $option && -z $only_values && $word == -?* && $word != -- && $word != *=* ]]; then
            _fopctl_value option "$word"
            [[ -z $REPLY ]] || option=$word
        elif [[ -n $option || ( -z $only_values && $word == --*=* ) ]]; then
            if [[ -z $option ]]; then word=${word#*=}; fi
            case $name in
                --admin | --server | --key | --token | --protect) typed+=("$name" "$word") ;;
                --pool) of_pool=("$name" "$word") ;;
                --principals) principals=("$name" "$word") ;;
            esac
            option=""
        elif [[ -z $only_values && $word == -- ]]; then
            only_values=yes
        elif _fopctl_has $'verb\t'"$word"$'\t'; then
            verb+=("$word")
            # The options of all verbs stay.
            mapfile -t page < <(printf '%s\n' "${page[@]}" | grep $'^option\t' && _fopctl_help "${verb[@]}")
        else
            first=${first:-$word}
            ((++count))
        fi
    done

    if [[ -z $option && -z $only_values && $current == --*=* ]]; then
        option=${current%%=*}
        lead=$option=
    fi
    if [[ -n $option ]]; then
        _fopctl_value option "$option"
        _fopctl_values "$REPLY"
        return
    fi
    if [[ $current == -* && -z $only_values ]]; then
        _fopctl_offer _fopctl_entries option
        return
    fi
    if _fopctl_has $'verb\t'; then
        _fopctl_offer _fopctl_entries verb
        return
    fi

    mapfile -t positionals < <(_fopctl_entries positional)
    ((${#positionals[@]} > 0)) || return
    if ((count >= ${#positionals[@]})) && _fopctl_has $'many\t'; then count=$((${#positionals[@]} - 1)); fi
    name=${positionals[count]-}
    case "${verb[*]}:$name" in
        *:device) _fopctl_offer _fopctl_json name devices ;;
        *:cartridge | *:medium) _fopctl_values CARTRIDGE ;;
        *:drive) _fopctl_offer _fopctl_json name drives ;;
        *:file | *:directory | "token revoke:token") _fopctl_files ;;
        "key revoke:name") _fopctl_values PRINCIPAL ;;
        "key create:name") ;;
        "lrs rule del:name" | "lrs rule change:rule") _fopctl_offer _fopctl_rules ;;
        *:name | *:old | *:prefix) _fopctl_values OBJECT ;;
        "io-sched set:setting" | "lrs set:words")
            if [[ ${verb[0]} == lrs ]]; then
                [[ $first != *=* ]] || first="="
                _fopctl_offer _fopctl_lrs_words "$first"
            else
                _fopctl_offer _fopctl_io_sched_keys
            fi
            [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
            ;;
        *)
            _fopctl_value positional "$name"
            _fopctl_values "$REPLY"
            ;;
    esac
}

complete -F _fopctl fopctl
