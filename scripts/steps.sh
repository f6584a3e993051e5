# shellcheck shell=bash
# Sourced by scripts that run named steps: each prints its name, then its duration or where its log is, and the others
# run on when one fails.

log_dir=$PWD/build/log
mkdir -p "$log_dir"
failed_steps=()
shown_lines=60  # Of the log of a step that failed.

# step NAME COMMAND...: the command's output goes to a log, of which a failure shows the end.
step() {
    local name=$1 status=0 started=$SECONDS
    local log=$log_dir/${name//[^a-zA-Z0-9_.-]/-}.log
    shift
    printf '%-44s' "$name"
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if ((status == 0)); then
        printf 'ok      %4d s\n' $((SECONDS - started))
    else
        printf 'FAILED  %4d s  (exit %d, log: %s)\n' $((SECONDS - started)) "$status" "${log#"$PWD"/}"
        tail -n "$shown_lines" "$log" | sed 's/^/    /'
        failed_steps+=("$name")
    fi
    return "$status"
}
