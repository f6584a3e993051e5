#compdef fopctl
# zsh completion for fopctl.
# Verbs, options and what a verb takes are those of the help pages. Names of disks, rules, principals, pools and objects
# come from the daemon, with the options that were typed already.

# _fopctl_help WORD...: the entries of a help page: kind, name, VALUE if it takes one, and description, with tabs between.
_fopctl_help() {
    command fopctl "$@" --help 2>/dev/null | awk '
        /^[A-Z].*:$/ { kind = $0 == "Options:" ? "option" : $0 == "Positionals:" ? "positional" : "verb" }
        /^$/ { kind = "" }
        /^  [^ ]/ && kind != "" {
            print kind "\t" $1 "\t" ($2 == "VALUE" ? "VALUE" : "") "\t" substr($0, 29)
        }
        /^Usage:/ && /\.\.\.\]?$/ { print "many\t\t\t" }'
}

# _fopctl_ask VERB...: what the daemon answers. Nothing if it does not answer soon.
_fopctl_ask() {
    command fopctl --timeout 2 "${typed[@]}" "$@" 2>/dev/null
}

# _fopctl_json FIELD VERB...: the values of a field of the objects in the answer.
_fopctl_json() {
    local field=$1
    shift
    _fopctl_ask --json "$@" | grep -o "\"$field\":\"[^\"]*\"" | cut -d '"' -f 4 | sort -u
}

# _fopctl_offer COMMAND WORD...: a line of the command's output is one candidate.
_fopctl_offer() {
    local -a names
    names=(${(f)"$("$@")"})
    compadd -a -- names
}

# The objects whose names begin with the word, as many as fit on a screen.
_fopctl_objects() {
    _fopctl_ask ls -- "${(Q)PREFIX}" | head -n 50
}

_fopctl_io_sched_keys() {
    _fopctl_ask io-sched show | sed -n -e '/^latency_goal=\|^depth_max=/d' -e 's/^\([a-z._]*=\).*/\1/p'
}

_fopctl_rules() {
    _fopctl_ask lrs rule list | sed -n 's/^\([^# ][^ ]*\) .*/\1/p'
}

# _fopctl_words KIND: the verbs, or the options, of the pages read so far.
_fopctl_words() {
    local -a entries fields
    local line
    for line in "${page[@]}"; do
        fields=("${(@ps:\t:)line}")
        [[ $fields[1] == $1 ]] || continue
        entries+=("${${fields[2]##*,}//:/\\:}:$fields[4]")
    done
    _describe "$1" entries
}

_fopctl() {
    local -a typed verb positionals
    local -aU page  # Both pages have --help.
    local word value="" option="" count=0 line many=""
    page=("${(@f)$(_fopctl_help)}")
    for word in "${(@)words[2,CURRENT-1]}"; do
        if [[ -n $option ]]; then
            [[ $option != --(admin|server|key|token|protect|principals) ]] || typed+=("$option" "$word")
            option=""
        elif [[ $word == -* ]]; then
            [[ -z ${(M)page:#option$'\t'(*,|)${word}$'\t'VALUE*} ]] || option=$word
        elif [[ -n ${(M)page:#verb$'\t'${word}$'\t'*} ]]; then
            verb+=("$word")
            # The options of all verbs stay.
            page=("${(@M)page:#option*}" "${(@f)$(_fopctl_help $verb)}")
        else
            (( ++count ))
        fi
    done

    case $option in
        "") ;;
        --admin|--key|--token|--principals|--config|--out|--public|--issuer|--rules) _files; return ;;
        --op) compadd echo bulk_echo ping read write mixed create; return ;;
        --wait) compadd ready; return ;;
        --protect) compadd seal encrypt; return ;;
        --pool) _fopctl_offer _fopctl_json pool df; return ;;
        --object) _fopctl_offer _fopctl_objects; return ;;
        --principal) _fopctl_offer _fopctl_json name key list; return ;;
        --medium) _fopctl_offer _fopctl_json name media; return ;;
        --color) compadd auto always never; return ;;
        *) return ;;
    esac
    if [[ $words[CURRENT] == -* ]]; then
        _fopctl_words option
        return
    fi
    if [[ -n ${(M)page:#verb*} ]]; then
        _fopctl_words verb
        return
    fi

    for line in "${(@M)page:#positional*}"; do positionals+=("${${(@ps:\t:)line}[2]}"); done
    if (( count >= $#positionals )) && [[ -n ${(M)page:#many*} ]]; then count=$(( $#positionals - 1 )); fi
    case "$verb:$positionals[count+1]" in
        *:device) _fopctl_offer _fopctl_json name devices ;;
        *:cartridge | *:medium) _fopctl_offer _fopctl_json name media ;;
        *:drive) _fopctl_offer _fopctl_json name drives ;;
        *:file | *:directory | "token revoke:token") _files ;;
        "key revoke:name") _fopctl_offer _fopctl_json name key list ;;
        "key create:name") ;;
        "lrs rule del:name" | "lrs rule change:rule") _fopctl_offer _fopctl_rules ;;
        *:name | *:old | *:prefix) _fopctl_offer _fopctl_objects ;;
        "log-level:level") compadd trace debug info warn error ;;
        "io-sched set:words") _fopctl_offer _fopctl_io_sched_keys ;;
        "lrs set:words") (( count > 0 )) || compadd crr deadline delay epoch_groups fifo mclock orr tbf trr ;;
    esac
}

_fopctl "$@"
