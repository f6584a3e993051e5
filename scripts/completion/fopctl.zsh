#compdef fopctl
# zsh completion for fopctl.
# Verbs, options and what they take are those of the help pages. Names of disks, rules, principals, pools and objects, and
# the settings of policies come from the daemon, with the options that were typed already.

# _fopctl_help WORD...: the entries of a help page: kind, name, what its value is called, and description, with tabs between.
_fopctl_help() {
    command fopctl "$@" --help 2>/dev/null | awk '
        /^[A-Z].*:$/ { kind = $0 == "Options:" ? "option" : $0 == "Positionals:" ? "positional" : "verb" }
        /^$/ { kind = "" }
        /^  [^ ]/ && kind != "" {
            fits = substr($0, 28, 1) ~ /^ ?$/  # A name that does not fit has the line to itself.
            split(fits ? substr($0, 1, 28) : $0, name, " ")
            print kind "\t" name[1] "\t" name[2] "\t" (fits ? substr($0, 29) : "")
        }
        /^Usage:/ && /\.\.\.\]?$/ { print "many\t\t\t" }'
}

# _fopctl_plain WORD: sets REPLY to the word as the program will get it: without quotes, and with the directory for a ~.
_fopctl_plain() {
    local user home
    REPLY=${(Q)1}
    [[ $1 == '~'* ]] || return 0
    user=${${REPLY#'~'}%%/*}
    if [[ -z $user ]]; then home=$HOME; else home=${nameddirs[$user]:-${userdirs[$user]}}; fi
    [[ -z $home ]] || REPLY=$home${REPLY#"~$user"}
}

# _fopctl_ask VERB...: what the daemon answers. Nothing if it does not answer soon.
_fopctl_ask() {
    command fopctl --timeout 2 "${typed[@]}" "$@" 2>/dev/null
}

# _fopctl_json FIELD VERB...: the values of a field of the objects in the answer.
_fopctl_json() {
    local field=$1
    shift
    _fopctl_ask --json "$@" | grep -o "\"$field\":\"[^\"\\\\]*\"" | cut -d '"' -f 4 | sort -u | _fopctl_names
}

# _fopctl_offer COMMAND WORD...: a line of the command's output is one candidate. zsh quotes it.
_fopctl_offer() {
    local -a names
    names=(${(f)"$("$@")"})
    compadd -a -- names
}

# The same for keys, which are followed by their values.
_fopctl_offer_keys() {
    local -a names
    names=(${(f)"$("$@")"})
    compadd -S '' -a -- names
}

# The lines of standard input, without those that fopctl would take for options instead of names.
_fopctl_names() {
    if [[ -z $option$only_values ]]; then grep -v '^-'; else cat; fi
}

# The objects whose names begin with the value, as many as fit on a screen.
_fopctl_objects() {
    _fopctl_ask ls "${of_pool[@]}" -- "${(Q)PREFIX}" | head -n 50 | _fopctl_names
}

_fopctl_io_sched_keys() {
    _fopctl_ask io-sched show | sed -n -e '/^latency_goal=\|^depth_max=/d' -e 's/^\([a-z._]*=\).*/\1/p'
}

_fopctl_rules() {
    _fopctl_ask lrs rule list | sed -n 's/^\([^# ][^ ]*\) .*/\1/p' | _fopctl_names
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

# _fopctl_offer_lrs_words [POLICY]: nothing follows the = of a key.
_fopctl_offer_lrs_words() {
    local -a names
    names=(${(f)"$(_fopctl_lrs_words "$1")"})
    local -a policies=(${names:#*=}) keys=(${(M)names:#*=})
    compadd -a -- policies
    compadd -S '' -a -- keys
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

# _fopctl_value KIND NAME: sets REPLY to what the value of this option or positional is called on the pages; to nothing if
# it takes none.
_fopctl_value() {
    local -a lines fields
    lines=(${(M)page:#$1$'\t'(*,|)${(b)2}$'\t'*})
    fields=("${(@ps:\t:)lines[1]}")
    REPLY=$fields[3]
}

# _fopctl_values NAME: candidates for a value that is called so on the pages. A name in small letters has the words that
# are allowed, with | between.
_fopctl_values() {
    case $1 in
        FILE) _files ;;
        POOL) _fopctl_offer _fopctl_json pool df ;;
        PRINCIPAL) _fopctl_offer _fopctl_json name key list "${principals[@]}" ;;
        CARTRIDGE) _fopctl_offer _fopctl_json name media ;;
        OBJECT) _fopctl_offer _fopctl_objects ;;
        "" | *[^a-z_\|]*) ;;
        *) compadd -- ${(s:|:)1} ;;
    esac
}

_fopctl() {
    local -a typed of_pool principals verb positionals
    local -aU page  # Both pages have --help.
    local word name option="" first="" only_values="" count=0 line REPLY
    page=("${(@f)$(_fopctl_help)}")
    for word in "${(@)words[2,CURRENT-1]}"; do
        _fopctl_plain "$word"
        word=$REPLY
        name=${option:-${word%%=*}}
        if [[ -z $option && -z $only_values && $word == -?* && $word != -- && $word != *=* ]]; then
            _fopctl_value option "$word"
            [[ -z $REPLY ]] || option=$word
        elif [[ -n $option || ( -z $only_values && $word == --*=* ) ]]; then
            [[ -n $option ]] || word=${word#*=}
            case $name in
                --admin | --server | --key | --token | --protect) typed+=("$name" "$word") ;;
                --pool) of_pool=("$name" "$word") ;;
                --principals) principals=("$name" "$word") ;;
            esac
            option=""
        elif [[ -z $only_values && $word == -- ]]; then
            only_values=yes
        elif [[ -n ${(M)page:#verb$'\t'${(b)word}$'\t'*} ]]; then
            verb+=("$word")
            # The options of all verbs stay.
            page=("${(@M)page:#option*}" "${(@f)$(_fopctl_help $verb)}")
        else
            first=${first:-$word}
            (( ++count ))
        fi
    done

    if [[ -z $option && -z $only_values && $PREFIX == --*=* ]]; then
        option=${PREFIX%%=*}
        IPREFIX+=$option=
        PREFIX=${PREFIX#*=}
    fi
    if [[ -n $option ]]; then
        _fopctl_value option "$option"
        _fopctl_values "$REPLY"
        return
    fi
    if [[ $PREFIX == -* && -z $only_values ]]; then
        _fopctl_words option
        return
    fi
    if [[ -n ${(M)page:#verb*} ]]; then
        _fopctl_words verb
        return
    fi

    for line in "${(@M)page:#positional*}"; do positionals+=("${${(@ps:\t:)line}[2]}"); done
    if (( count >= $#positionals )) && [[ -n ${(M)page:#many*} ]]; then count=$(( $#positionals - 1 )); fi
    name=$positionals[count+1]
    case "$verb:$name" in
        *:device) _fopctl_offer _fopctl_json name devices ;;
        *:cartridge | *:medium) _fopctl_values CARTRIDGE ;;
        *:drive) _fopctl_offer _fopctl_json name drives ;;
        *:file | *:directory | "token revoke:token") _files ;;
        "key revoke:name") _fopctl_values PRINCIPAL ;;
        "key create:name") ;;
        "lrs rule del:name" | "lrs rule change:rule") _fopctl_offer _fopctl_rules ;;
        *:name | *:old | *:prefix) _fopctl_values OBJECT ;;
        "io-sched set:setting") _fopctl_offer_keys _fopctl_io_sched_keys ;;
        "lrs set:words")
            [[ $first != *=* ]] || first="="
            _fopctl_offer_lrs_words "$first"
            ;;
        *)
            _fopctl_value positional "$name"
            _fopctl_values "$REPLY"
            ;;
    esac
}

_fopctl "$@"
