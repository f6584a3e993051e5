# fish completion for fopctl.
# Verbs, options and what they take are those of the help pages. Names of disks, rules, principals, pools and objects, and
# the settings of policies come from the daemon, with the options that were typed already.

# __fopctl_help WORD...: the entries of a help page: kind, name, what its value is called, and description, with tabs between.
function __fopctl_help
    command fopctl $argv --help 2>/dev/null | awk '
        /^[A-Z].*:$/ { kind = $0 == "Options:" ? "option" : $0 == "Positionals:" ? "positional" : "verb" }
        /^$/ { kind = "" }
        /^  [^ ]/ && kind != "" {
            fits = substr($0, 28, 1) ~ /^ ?$/  # A name that does not fit has the line to itself.
            split(fits ? substr($0, 1, 28) : $0, name, " ")
            print kind "\t" name[1] "\t" name[2] "\t" (fits ? substr($0, 29) : "")
        }
        /^Usage:/ && /\.\.\.\]?$/ { print "many\t\t\t" }'
end

# __fopctl_plain WORD...: each word, whose quotes fish has removed, with the directory for a ~ at its beginning.
function __fopctl_plain
    for word in $argv
        set --local user (string match --regex --groups-only -- '^~([^/]*)' $word)
        if test (count $user) -eq 0
            echo -- $word
            continue
        end
        set --local home $HOME
        test -z "$user"; or set home (getent passwd $user | string split --fields 6 :)
        test -n "$home"; or set home "~$user"
        echo -- $home(string sub --start (math 2 + (string length -- "$user")) -- $word)
    end
end

# __fopctl_ask VERB...: what the daemon answers. Nothing if it does not answer soon.
function __fopctl_ask
    command fopctl --timeout 2 $__fopctl_typed $argv 2>/dev/null
end

# __fopctl_json FIELD VERB...: the values of a field of the objects in the answer.
function __fopctl_json
    __fopctl_ask --json $argv[2..] | string match --all --regex --groups-only "\"$argv[1]\":\"([^\"\\\\]*)\"" | sort -u
end

# __fopctl_objects VALUE: the objects whose names begin with the value, as many as fit on a screen.
function __fopctl_objects
    __fopctl_ask ls $__fopctl_pool -- $argv[1] | head -n 50
end

# __fopctl_names VALUE...: the values, without those that fopctl would take for options instead of names.
function __fopctl_names
    for value in $argv
        test -z "$__fopctl_only_values"; and string match --quiet -- '-*' $value; or echo -- $value
    end
end

function __fopctl_rules
    __fopctl_ask lrs rule list | string replace --filter --regex '^([^# ]\S*) .*' '$1'
end

function __fopctl_io_sched_keys
    __fopctl_ask io-sched show | string replace --filter --regex '^([a-z._]+)=.*' '$1=' | string match --invert --regex '^(latency_goal|depth_max)='
end

# __fopctl_lrs_words [POLICY]: the keys of the section lrs and of the policy, which are in front of a = on the daemon's page.
# Without a policy, all policies and the keys of the one in force; with =, only these keys.
function __fopctl_lrs_words
    __fopctl_ask lrs show --all | awk -v policy="$argv[1]" '
        /^CLASS/ { exit }
        NR == 1 { in_force = $2; sub(",", "", in_force); next }
        NR > 2 && !/^[a-z_]+:/ { next }
        {
            name = NR == 2 ? "" : substr($1, 1, length($1) - 1)
            if (name != "" && policy == "") print name
            if (name != "" && name != (policy ~ /^=?$/ ? in_force : policy)) next
            for (at = name == "" ? 1 : 2; at <= NF; at++) print substr($at, 1, index($at, "="))
        }'
end

# __fopctl_files PATH: the files whose paths begin so, with the ~ that was typed.
function __fopctl_files
    set --local tilde (string match --regex -- '^~[^/]*' $argv[1])
    if test (count $tilde) -eq 0
        __fish_complete_path $argv[1]
        return
    end
    set --local length (string length -- (__fopctl_plain $tilde))
    for each in (__fish_complete_path (__fopctl_plain $argv[1]))
        echo -- $tilde(string sub --start (math 1 + $length) -- $each)
    end
end

# __fopctl_words KIND ENTRY...: the verbs, or the options, among the entries.
function __fopctl_words
    for entry in $argv[2..]
        set --local fields (string split \t -- $entry)
        test $fields[1] = $argv[1]; and printf '%s\t%s\n' (string replace --regex '.*,' '' -- $fields[2]) $fields[4]
    end
end

# __fopctl_value KIND NAME ENTRY...: what the value of this option or positional is called in the entries.
function __fopctl_value
    set --local name (string escape --style=regex -- $argv[2])
    string replace --filter --regex -- "^$argv[1]\t(?:.*,)?$name\t([^\t]+)\t.*" '$1' $argv[3..] | head -n 1
end

# __fopctl_values NAME VALUE: candidates for a value that is called so on the pages. A name in small letters has the words
# that are allowed, with | between.
function __fopctl_values
    switch "$argv[1]"
        case FILE
            __fopctl_files $argv[2]
        case POOL
            __fopctl_json pool df
        case PRINCIPAL
            __fopctl_json name key list $__fopctl_principals
        case CARTRIDGE
            __fopctl_json name media
        case OBJECT
            __fopctl_objects $argv[2]
        case '*'
            string match --quiet --regex '^[a-z_|]+$' -- "$argv[1]"; and string split '|' -- $argv[1]
    end
end

function __fopctl
    set --global __fopctl_typed
    set --global __fopctl_pool
    set --global __fopctl_principals
    set --local verb
    set --local option
    set --global __fopctl_only_values
    set --local first
    set --local count 0
    set --local page (__fopctl_help)
    for word in (__fopctl_plain (commandline --tokenize --current-process --cut-at-cursor)[2..])
        set --local name $option (string replace --regex '=.*' '' -- $word)
        if test -z "$option$__fopctl_only_values"; and string match --quiet --regex -- '^-[^=]+$' $word; and test "$word" != --
            test -n "$(__fopctl_value option $word $page)"; and set option $word
        else if test -n "$option"; or begin; test -z "$__fopctl_only_values"; and string match --quiet --regex -- '^--.*=' $word; end
            test -n "$option"; or set word (string replace --regex '[^=]*=' '' -- $word)
            switch $name[1]
                case --admin --server --key --token --protect
                    set --append __fopctl_typed $name[1] $word
                case --pool
                    set __fopctl_pool $name[1] $word
                case --principals
                    set __fopctl_principals $name[1] $word
            end
            set option
        else if test -z "$__fopctl_only_values"; and test "$word" = --
            set __fopctl_only_values yes
        else if string match --quiet --regex -- '^verb\t'(string escape --style=regex -- $word)'\t' $page
            set --append verb $word
            # The options of all verbs stay.
            set page (string match -- 'option*' $page) (__fopctl_help $verb)
        else
            set --query first[1]; or set first $word
            set count (math $count + 1)
        end
    end

    set --local current (commandline --current-token --cut-at-cursor | string unescape)
    set --query current[1]; or set current ''
    if test -z "$option$__fopctl_only_values"; and string match --quiet --regex -- '^--.*=' $current
        set --local parts (string split --max 1 = -- $current)
        for value in (__fopctl_values (__fopctl_value option $parts[1] $page | string collect --allow-empty) $parts[2])
            echo -- $parts[1]=$value
        end
        return
    end
    if test -n "$option"
        __fopctl_values (__fopctl_value option $option $page | string collect --allow-empty) $current
        return
    end
    if test -z "$__fopctl_only_values"; and string match --quiet -- '-*' $current
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
    set --local name $positionals[$(math $count + 1)]
    switch "$verb:$name"
        case '*:device'
            __fopctl_names (__fopctl_json name devices)
        case '*:cartridge' '*:medium'
            __fopctl_names (__fopctl_values CARTRIDGE)
        case '*:drive'
            __fopctl_names (__fopctl_json name drives)
        case '*:file' '*:directory' 'token revoke:token'
            __fopctl_files $current
        case 'key revoke:name'
            __fopctl_names (__fopctl_values PRINCIPAL)
        case 'key create:name'
        case 'lrs rule del:name' 'lrs rule change:rule'
            __fopctl_names (__fopctl_rules)
        case '*:name' '*:old' '*:prefix'
            __fopctl_names (__fopctl_objects $current)
        case 'io-sched set:setting'
            __fopctl_io_sched_keys
        case 'lrs set:words'
            string match --quiet -- '*=*' $first; and set first =
            __fopctl_lrs_words $first
        case '*:?*'
            __fopctl_values (__fopctl_value positional $name $page | string collect --allow-empty) $current
    end
end

complete --command fopctl --no-files --arguments '(__fopctl)'
