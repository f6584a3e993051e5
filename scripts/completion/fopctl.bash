# bash completion for fopctl.
# A new verb is one word in `verbs`; its own options and arguments are one case below.

_fopctl() {
    local current=${COMP_WORDS[COMP_CWORD]}
    local previous=${COMP_WORDS[COMP_CWORD - 1]}
    local global_options="--admin --json --quiet --timeout --version --help"
    local verbs="status top reload drain log-level"
    COMPREPLY=()

    # The argument of an option.
    case $previous in
        --admin)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            return
            ;;
        --timeout | --interval | --count)
            return
            ;;
    esac

    # The verb is the first word that is neither an option nor an option's argument.
    local verb="" arguments=0 index word
    for ((index = 1; index < COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        case $word in
            --admin | --timeout | --interval | --count) ((index++)) ;;
            -*) ;;
            *)
                if [[ -z $verb ]]; then
                    verb=$word
                else
                    ((arguments++))
                fi
                ;;
        esac
    done

    if [[ $current == -* ]]; then
        local options=$global_options
        [[ $verb == top ]] && options+=" --interval --count"
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
    elif [[ -z $verb ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$current")
    elif [[ $verb == log-level && $arguments -eq 0 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "trace debug info warn error" -- "$current")
    fi
}

complete -F _fopctl fopctl
