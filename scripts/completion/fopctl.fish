# fish completion for fopctl.
# Verbs, options and what a verb takes are those of the help pages. Names of disks, rules, principals, pools and objects
# come from the daemon, with the options that were typed already.

# __fopctl_help WORD...: the entries of a help page: kind, name, VALUE if it takes one, and description, with tabs between.
function __fopctl_help
    command fopctl $argv --help 2>/dev/null | awk '
        /^[A-Z].*:$/ { kind = $0 == "Options:" ? "option" : $0 == "Positionals:" ? "positional" : "verb" }
        /^$/ { kind = "" }
        /^  [^ ]/ && kind != "" {
            print kind "\t" $1 "\t" ($2 == "VALUE" ? "VALUE" : "") "\t" substr($0, 29)
        }
        /^Usage:/ && /\.\.\.\]?$/ { print "many\t\t\t" }'
end

# __fopctl_ask VERB...: what the daemon answers. Nothing if it does not answer soon.
function __fopctl_ask
    command fopctl --timeout 2 $__fopctl_typed $argv 2>/dev/null
end

# __fopctl_json FIELD VERB...: the values of a field of the objects in the answer.
function __fopctl_json
    __fopctl_ask --json $argv[2..] | string match --all --regex --groups-only "\"$argv[1]\":\"([^\"]*)\"" | sort -u
end

# The objects whose names begin with the word, as many as fit on a screen.
function __fopctl_objects
    __fopctl_ask ls -- (commandline --current-token | string unescape) | head -n 50
end

function __fopctl_rules
    __fopctl_ask lrs rule list | string replace --filter --regex '^([^# ]\S*) .*' '$1'
end

function __fopctl_io_sched_keys
    __fopctl_ask io-sched show | string replace --filter --regex '^([a-z._]+)=.*' '$1=' | string match --invert --regex '^(latency_goal|depth_max)='
end

function __fopctl_files
    __fish_complete_path (commandline --current-token)
end

# __fopctl_words KIND ENTRY...: the verbs, or the options, among the entries.
function __fopctl_words
    for entry in $argv[2..]
        set --local fields (string split \t -- $entry)
        test $fields[1] = $argv[1]; and printf '%s\t%s\n' (string replace --regex '.*,' '' -- $fields[2]) $fields[4]
    end
end

function __fopctl
    set --global __fopctl_typed
    set --local verb
    set --local option
    set --local count 0
    set --local page (__fopctl_help)
    for word in (commandline --tokenize --current-process --cut-at-cursor)[2..]
        if test -n "$option"
            contains -- $option --admin --server --key --token --protect --principals
            and set --append __fopctl_typed $option $word
            set option
        else if string match --quiet -- '-*' $word
            string match --quiet --regex -- '^option\t(.*,)?'(string escape --style=regex -- $word)'\tVALUE' $page
            and set option $word
        else if string match --quiet -- verb\t$word\t'*' $page
            set --append verb $word
            # The options of all verbs stay.
            set page (string match -- 'option*' $page) (__fopctl_help $verb)
        else
            set count (math $count + 1)
        end
    end

    switch "$option"
        case ''
        case --admin --key --token --principals --config --out --public --issuer --rules
            __fopctl_files
            return
        case --op
            printf '%s\n' echo bulk_echo ping read write mixed create
            return
        case --wait
            echo ready
            return
        case --protect
            printf '%s\n' seal encrypt
            return
        case --pool
            __fopctl_json pool df
            return
        case --object
            __fopctl_objects
            return
        case --principal
            __fopctl_json name key list
            return
        case --medium
            __fopctl_json name media
            return
        case --color
            printf '%s\n' auto always never
            return
        case '*'
            return
    end
    if string match --quiet -- '-*' (commandline --current-token)
        __fopctl_words option $page
        return
    end
    if string match --quiet -- 'verb*' $page
        __fopctl_words verb $page
        return
    end

    set --local positionals (string match -- 'positional*' $page | string split --fields 2 \t)
    if test $count -ge (count $positionals); and string match --quiet -- 'many*' $page
        set count (math (count $positionals) - 1)
    end
    switch "$verb:$positionals[$(math $count + 1)]"
        case '*:device'
            __fopctl_json name devices
        case '*:cartridge' '*:medium'
            __fopctl_json name media
        case '*:drive'
            __fopctl_json name drives
        case '*:file' '*:directory' 'token revoke:token'
            __fopctl_files
        case 'key revoke:name'
            __fopctl_json name key list
        case 'key create:name'
        case 'lrs rule del:name' 'lrs rule change:rule'
            __fopctl_rules
        case '*:name' '*:old' '*:prefix'
            __fopctl_objects
        case 'log-level:level'
            printf '%s\n' trace debug info warn error
        case 'io-sched set:words'
            __fopctl_io_sched_keys
        case 'lrs set:words'
            test $count -gt 0; or printf '%s\n' crr deadline delay epoch_groups fifo mclock orr tbf trr
    end
end

complete --command fopctl --no-files --arguments '(__fopctl)'
