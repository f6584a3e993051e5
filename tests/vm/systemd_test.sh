#!/bin/bash
# Goal: the Debian package under a real systemd: installing, starting, reloading, failing, being killed, stopping and
#       removing are what the manual, the unit and the package's scripts promise.
# Method: runs as root in the guest of build-image, with the packages beside it, one long story from installation to
#         purge. Says `ok`, `FAILED` or `skipped` for each fact, and at last how many of them.
set -u

here=$(dirname "${BASH_SOURCE[0]}")
export LC_ALL=C SYSTEMD_PAGER='' SYSTEMD_COLORS=0
config=/etc/fopd/fopd.yaml
socket=/run/fopd/admin.sock
lock=/var/lib/fopd/fopd.lock
drop_in=/run/systemd/system/fopd.service.d/test.conf
metrics=http://127.0.0.1:9420/metrics
# shellcheck source=tests/vm/checks.sh
. "$here/checks.sh"

property() {
    systemctl show fopd --property "$1" --value
}

properties() {
    local wanted
    for wanted in "$@"; do is "${wanted#*=}" property "${wanted%%=*}" || return 1; done
}

process_line() {
    awk -v key="$1:" '$1 == key {print $2}' "/proc/$(property MainPID)/status"
}

# From here on is what `logged` looks at.
mark() {
    journalctl --sync
    cursor=$(journalctl --boot --lines 0 --show-cursor | sed -n 's/^-- cursor: //p')
}

# since_mark MATCH...: the fopd entries since the mark, as JSON, one a line.
since_mark() {
    journalctl --sync
    journalctl --after-cursor "$cursor" --output json "$@"
}

# logged JQ-CONDITION: an entry since the mark fulfils it.
logged() {
    since_mark | jq --exit-status --slurp "any(.[]; $1)" >/dev/null
}

logged_event() {
    logged ".FOPD_EVENT == \"fopd.$1\""
}

status() {
    fopctl --json status
}

status_is() {
    status | jq --exit-status "$1" >/dev/null
}

is_ready() {
    properties ActiveState=active SubState=running && status_is '.state == "ready"'
}

# Ready again, as another process than PID.
is_ready_after() {
    [[ $(property MainPID) != "$1" ]] && is_ready
}

configure() {
    printf '%s\n' "$@" >"$config"
}

# with_unit LINE...: puts the lines into the unit's [Service]; without any it is as packaged.
with_unit() {
    rm -f "$drop_in"
    if (($# > 0)); then
        mkdir -p "${drop_in%/*}"
        printf '%s\n' '[Service]' "$@" >"$drop_in"
    fi
    systemctl daemon-reload
}

# refused STATUS: the start failed with it, was not tried again, and left nothing.
refused() {
    properties ActiveState=failed Result=exit-code ExecMainStatus="$1" NRestarts=0 &&
        gone "$socket" && gone "$lock"
}

forget_failure() {
    systemctl stop fopd
    systemctl reset-failed fopd
}

echo "guest: $(uname -r), $(systemctl --version | head -n 1), booted in $(cut -d ' ' -f 1 /proc/uptime) s"
systemctl is-system-running --wait >/dev/null

### Installing

check "client: installs without the daemon" dpkg --install "$here"/fopctl_*.deb
check "client: runs without the daemon" exits 69 fopctl --timeout 5 ls
check "package: installs" dpkg --install "$here"/fopd_*.deb
# shellcheck disable=SC2016  # It is dpkg-query that expands it.
check "package: installed for good" is "ii " dpkg-query --show --showformat '${db:Status-Abbrev}' fopd
check "package: every file is as packaged" dpkg --verify fopd fopctl
check "package: the user is there, with no shell" is /usr/sbin/nologin sh -c "getent passwd fopd | cut -d : -f 7"
check "package: the data directory belongs to fopd" is "fopd fopd 750" stat --format '%U %G %a' /var/lib/fopd
check "package: the configuration belongs to root" is "root root 644" stat --format '%U %G %a' $config
check "package: the programs belong to root" \
    is $'root root 755\nroot root 755' stat --format '%U %G %a' /usr/bin/fopd /usr/bin/fopctl
check "package: installing does not start the daemon" is inactive systemctl is-active fopd
check "package: installing does not enable the daemon" is disabled systemctl is-enabled fopd
check "package: what is installed is a valid configuration" fopd --check-config
check "no daemon: fopctl exits 69" exits 69 fopctl status
original_config=$(<"$config")

### Starting

mark
check "start: succeeds" systemctl start fopd
check "start: active, by READY=1" properties ActiveState=active SubState=running Type=notify Result=success
check "start: the status text says ready" is ready property StatusText
check "start: logged as an event with fields" \
    logged '.FOPD_EVENT == "fopd.daemon.ready" and .FOPD_LOCALITIES == "1" and .PRIORITY == "6"
            and .SYSLOG_IDENTIFIER == "fopd" and ._SYSTEMD_UNIT == "fopd.service"'
check "start: everything the daemon logs is an event" \
    jq --exit-status --slurp 'length > 0 and all(.[]; .FOPD_EVENT and ._TRANSPORT == "journal")' \
    <(since_mark _COMM=fopd)
check "start: as user fopd" is fopd stat --format %U "/proc/$(property MainPID)"
check "start: no capabilities" is 0000000000000000 process_line CapBnd
check "start: no new privileges" is 1 process_line NoNewPrivs
check "start: system calls are filtered" is 2 process_line Seccomp
check "start: on io_uring, with registered buffers" \
    status_is '.localities | length > 0 and all(.[]; .backend == "io_uring" and .buffers_registered)'
check "start: warns only that there are no keys yet" \
    status_is '.warnings | length == 1 and (.[0] | contains("no client can connect"))'
check "start: under the watchdog" status_is '.watchdog'
check "start: the status is this process's" is "$(property MainPID)" sh -c "fopctl --json status | jq .pid"
check "admin: the log says whose socket it is" \
    logged '.FOPD_EVENT == "fopd.admin.listening" and .FOPD_GROUP == "fopd"'
check "admin: the socket is for group fopd" is "fopd fopd 660" stat --format '%U %G %a' $socket
useradd --groups fopd member
useradd stranger
check "admin: a member of group fopd may ask" runuser -u member -- fopctl status
check "admin: another user is not allowed" exits 77 runuser -u stranger -- fopctl status
check "metrics: answers on 127.0.0.1:9420" sh -c "curl --silent --fail $metrics | grep '^fopd_build_info'"
check "metrics: the admin paths are not on TCP" exits 22 curl --silent --fail "${metrics%/metrics}/v1/status"

### Reloading

configure 'log: { level: debug }'
mark
check "reload: a good file succeeds" systemctl reload fopd
check "reload: takes effect" status_is '.log_level == "debug"'
check "reload: is logged" logged_event daemon.reloaded
check "reload: the status text says ready again" is ready property StatusText
configure 'log: { levle: info }'
pid=$(property MainPID)
mark
check "reload: a bad file fails" exits 1 systemctl reload fopd
check "reload: the daemon stays" is "$pid" property MainPID
check "reload: the daemon keeps what it had" status_is '.state == "ready" and .log_level == "debug"'
check "reload: the journal says what is wrong" \
    logged '.FOPD_EVENT == "fopd.daemon.config_refused" and .PRIORITY == "3"
            and (.FOPD_PROBLEM | startswith("/etc/fopd/fopd.yaml:1:8: log.levle:"))'
configure "$original_config"
check "reload: succeeds again with a good file" systemctl reload fopd
mark
systemctl kill --signal HUP fopd
check "SIGHUP: reloads" soon 10 logged_event daemon.reloaded
check "SIGHUP: the daemon is ready after it" soon 10 is_ready

### Dying

pid=$(property MainPID)
mark
kill -KILL "$pid"
check "kill -9: ready again" soon 60 is_ready_after "$pid"
check "kill -9: restarted once" is 1 property NRestarts
check "kill -9: nothing stale was in the way" logged_event daemon.ready
check "second daemon: exits 75" exits 75 runuser -u fopd -- fopd
check "second daemon: names the first" \
    sh -c "runuser -u fopd -- fopd 2>&1 | grep 'in use by another fopd (pid $(property MainPID))'"
check "second daemon: the first is none the worse" is_ready

pid=$(property MainPID)
mark
echo "         (a frozen daemon: waiting for the watchdog, $(property WatchdogUSec))"
kill -STOP "$pid"
check "watchdog: a frozen daemon is killed and ready again" soon 120 is_ready_after "$pid"
check "watchdog: was the reason" logged '.UNIT == "fopd.service" and .UNIT_RESULT == "watchdog"'
check "watchdog: restarted once more" is 2 property NRestarts

### Idling

pid=$(property MainPID)
ticks() {
    awk '{print $14 + $15}' "/proc/$pid/stat"
}
before=$(ticks)
sleep 30
echo "         idle for 30 s: $((($(ticks) - before) * 1000 / $(getconf CLK_TCK))) ms of processor," \
    "$(awk '/^VmRSS/ {print $2}' "/proc/$pid/status") KiB resident"

### Stopping

mark
started=$SECONDS
check "stop: succeeds" systemctl stop fopd
check "stop: cleanly" properties ActiveState=inactive Result=success ExecMainStatus=0
check "stop: within the stop timeout" test $((SECONDS - started)) -lt 60
check "stop: logged" logged_event daemon.stopped
check "stop: no socket is left" gone $socket
check "stop: no lock is left" gone $lock
check "stop: no warning, no error" is "" since_mark --priority warning --unit fopd

### A newcomer: two principals, two disks, a limit, a lost disk

keys=$(mktemp --directory)
images=/var/lib/fopd
ann() {
    fopctl --key "$keys/ann.key" "$@"
}
bob() {
    fopctl --key "$keys/bob.key" "$@"
}
# stores PRINCIPAL FOLDER: four objects below a name that is the folder's.
stores() {
    local number
    mkdir "$keys/$2"
    for number in 1 2 3 4; do head --bytes=100K /dev/urandom >"$keys/$2/$number"; done
    "$1" put -r "$keys/$2" "$2/"
}
# fetches PRINCIPAL FOLDER: what it stored, unchanged.
fetches() {
    rm -rf "$keys/copy"
    "$1" get -r "$2/" "$keys/copy" && diff --recursive "$keys/$2" "$keys/copy"
}
admin() {
    fopctl --key "$keys/admin.key" "$@"
}
# names JQ-CONDITION: of the objects for which it is true. The administrator may look at all of them.
names() {
    { admin ls --json 2>/dev/null || true; } | jq --raw-output ".objects[] | select($1) | .name"
}
is_on_missing_disk() {
    admin --json get "$1" "$keys/one" 2>&1 | jq --exit-status '.code == "medium_missing"'
}
# metric SERIES
metric() {
    curl --silent --fail $metrics | awk -v series="$1" '$1 == series {print $2}'
}
rule_of() {
    fopctl --json lrs which "op=read principal=$1 size=4k" | jq --raw-output .by_rules.rule
}
was_held_back() {
    fopctl --json lrs show |
        jq --exit-status --arg name "$1{" 'any(.classes[]; (.name | startswith($name)) and .throttled_s > 0)'
}

configure 'auth: { principals: /etc/fopd/principals.yaml }' \
    'pools: [{ name: fast }]' \
    'devices:' \
    "  - { name: d0, path: $images/d0.img, size: 256MiB, thin: true, pool: fast }" \
    "  - { name: d1, path: $images/d1.img, size: 256MiB, thin: true, pool: fast }"
check "keys: root makes one while no daemon runs" fopctl key create ann --out "$keys/ann.key"
check "keys: the daemon may read them and not change them" \
    is "root fopd 640" stat --format '%U %G %a' /etc/fopd/principals.yaml
check "keys: the daemon starts with them" systemctl start fopd
check "keys: root makes one while the daemon runs" fopctl key create bob --out "$keys/bob.key"
check "keys: one for administration" \
    fopctl key create admin --rights read,write,create,delete,admin --out "$keys/admin.key"
check "keys: the daemon may still read them" \
    is "root fopd 640" stat --format '%U %G %a' /etc/fopd/principals.yaml
check "keys: the new one is good at once" bob ls
check "keys: the daemon restarts with both" systemctl restart fopd
check "keys: ready after it" soon 60 is_ready
check "keys: nobody comes without one" exits 77 fopctl ls
check "objects: ann stores some" stores ann photos
check "objects: bob stores some" stores bob videos
check "objects: ann fetches hers" fetches ann photos
check "objects: bob may not read hers" exits 77 bob get photos/1 "$keys/stolen"
check "disks: both are open" \
    is "d0 good d1 good" sh -c "fopctl --json devices | jq --raw-output '.devices[] | .name, .state' | paste -sd ' '"
check "disks: nothing needs attention" fopctl health

check "limit: the policy has rules" fopctl lrs set tbf
check "limit: bob gets a rule" fopctl lrs rule add 'bob principal=bob rate=1/s'
check "limit: his fops belong to it" is bob rule_of bob
check "limit: those of ann do not" is default rule_of ann
check "limit: bob fetches his all the same" fetches bob videos
check "limit: he was held back" was_held_back bob
check "limit: a new key leaves it alone" fopctl key create carol --out "$keys/carol.key"
check "limit: it is still there" is bob rule_of bob
check "limit: and is revoked without it" fopctl key revoke carol
check "limit: it is there after that" is bob rule_of bob

check "lost disk: stop" systemctl stop fopd
mv $images/d1.img $images/lost.img
mark
check "lost disk: the daemon starts without it" systemctl start fopd
check "lost disk: ready" soon 60 is_ready
check "lost disk: no file is made in its place" gone $images/d1.img
check "lost disk: is an error in the journal" \
    logged '.FOPD_EVENT == "fopd.daemon.slot_missing" and .PRIORITY == "3"'
# Slots are numbered in the order in which the disks came; a number of an object begins with that of its slot.
lost=$(names '.fid | startswith("0002")')
lost_count=$(wc --words <<<"$lost")
check "lost disk: some of the objects were on it, not all" test "$lost_count" -gt 0 -a "$lost_count" -lt 8
check "lost disk: health is critical" exits 2 fopctl health
check "lost disk: health names the disk and counts the objects" \
    is "CRITICAL: disk d1 is missing (slot 2): $lost_count of 8 objects cannot be read" fopctl health
check "lost disk: devices says so" \
    is "good given-up" sh -c "fopctl --json devices | jq --raw-output '.devices[].state' | paste -sd ' '"
check "lost disk: status lists the slot" \
    status_is '.missing_slots | length == 1 and .[0].slot == 2 and .[0].device == "d1"'
check "lost disk: the metrics say so" is 1 metric 'fopd_slots_missing{pool="fast"}'
check "lost disk: ls marks the objects that are gone" is "$lost" names '.size == null'
check "lost disk: ls fails" exits 1 admin ls
for name in $lost; do
    check "lost disk: $name is said to be on it" is_on_missing_disk "$name"
done
for name in $(names '.size != null and (.name | startswith("photos/"))'); do
    check "lost disk: $name can be read" ann get "$name" "$keys/one"
done
check "lost disk: stop again" systemctl stop fopd
mv $images/lost.img $images/d1.img
check "lost disk: comes back" systemctl start fopd
check "lost disk: ready with it" soon 60 is_ready
check "lost disk: nothing needs attention any more" fopctl health
check "lost disk: ann has hers again" fetches ann photos
check "lost disk: bob has his again" fetches bob videos

### The commands of the pages that need the service, as they stand there; tests/process/page_plans.py looks for them here.

damaged_objects() {
    journalctl -u fopd FOPD_EVENT=fopd.store.scrub_found_damage --since today -o json |
        jq -r '.FOPD_OBJECT + " " + .FOPD_NAME' | sort -u
}
check "pages: errors" journalctl -u fopd -p err
check "pages: warnings" journalctl -u fopd -p warning --since today
check "pages: one event" journalctl -u fopd FOPD_EVENT=fopd.devices.state
check "pages: an event of a disk" journalctl -u fopd FOPD_EVENT=fopd.devices.error FOPD_DEVICE=d0
check "pages: damaged objects" damaged_objects
check "pages: who administered" journalctl -u fopd FOPD_EVENT=fopd.audit.administration
check "pages: who was denied" journalctl -u fopd FOPD_EVENT=fopd.audit.denied FOPD_PRINCIPAL=ann
check "pages: memory" systemctl show --property MemoryPeak fopd
check "pages: rotation" cp /usr/share/doc/fopd/examples/logrotate /etc/logrotate.d/fopd

# Puts the lines of the file beside it into what it is given: above what systemctl edit discards, else at the end.
editor=$keys/editor
cat >"$editor" <<'EOF'
#!/bin/bash
file=${!#}
{
    sed '/^### Lines below/,$d' "$file"
    cat "$0.text"
    sed --quiet '/^### Lines below/,$p' "$file"
} >"$0.new"
cat "$0.new" >"$file"
EOF
chmod 755 "$editor"
echo 'log: { level: debug }' >"$editor.text"
check "pages: the configuration is edited" env SUDO_EDITOR="$editor" sudoedit /etc/fopd/fopd.yaml
check "pages: it has what was edited" grep 'level: debug' $config
check "pages: it is valid" fopd --check-config
printf '%s\n' '[Service]' MemoryMax=1G >"$editor.text"
# It edits only where there is a terminal.
check "pages: the unit is edited" \
    env SYSTEMD_EDITOR="$editor" script --quiet --return --command 'systemctl edit fopd' /dev/null
check "pages: the unit has what was edited" properties MemoryMax=1073741824
rm -rf /etc/systemd/system/fopd.service.d
install -D -m 644 /usr/share/doc/fopd/drop-ins/tape.conf /etc/systemd/system/fopd.service.d/tape.conf
systemctl daemon-reload
check "pages: the drop-in for tape gives the group" properties SupplementaryGroups=tape
check "pages: the daemon runs with it" systemctl restart fopd
check "pages: ready with it" soon 60 is_ready
rm -rf /etc/systemd/system/fopd.service.d
systemctl daemon-reload
check "newcomer: stops" systemctl stop fopd
rm -rf "$keys" $images/d0.img $images/d1.img /etc/fopd/principals.yaml
configure "$original_config"

### A whole disk, which belonged to another node and is wiped

forget_everything() {
    rm -rf /var/lib/fopd/*
}
# nodes_disks [DISK]: a pool with a disk that is a file, and another one if it is named.
nodes_disks() {
    configure 'pools: [{ name: fast }]' 'devices:' \
        "  - { name: d1, path: /var/lib/fopd/d1.img, size: 256MiB, thin: true, pool: fast }" \
        ${1:+"  - { name: d0, path: $1, pool: fast }"}
}
disk=/dev/disk/by-id/virtio-spare
check "whole disk: is there" test -b "$disk"
install -D -m 644 /usr/share/doc/fopd/drop-ins/disks.conf /etc/systemd/system/fopd.service.d/disks.conf
systemctl daemon-reload
forget_everything
nodes_disks
check "whole disk: a node starts without it" systemctl start fopd
nodes_disks "$disk"
check "whole disk: the node takes it while it is blank" fopctl device add d0
check "whole disk: the node stops" systemctl stop fopd
check "whole disk: the node has it again at a start" systemctl start fopd
check "whole disk: both disks are good" \
    is "good good" sh -c "fopctl --json devices | jq --raw-output '.devices[].state' | paste -sd ' '"
check "whole disk: the node stops again" systemctl stop fopd
forget_everything
nodes_disks
check "whole disk: another node starts" systemctl start fopd
nodes_disks "$disk"
check "whole disk: the other node refuses it" exits 1 fopctl device add d0
# Linux before 6.4 closes a file that was registered with io_uring up to a second later.
check "whole disk: its first MiB is wiped" soon 10 blkdiscard --zeroout --length 1MiB "$disk"
check "whole disk: its last MiB is wiped" \
    soon 10 blkdiscard --zeroout --offset $(( $(blockdev --getsize64 "$disk") - 1048576 )) "$disk"
check "whole disk: the other node takes it now" fopctl device add d0
check "whole disk: nothing needs attention" fopctl health
check "whole disk: the other node stops" systemctl stop fopd
forget_everything
rm -rf /etc/systemd/system/fopd.service.d
systemctl daemon-reload
configure "$original_config"

### Refusing to start

configure 'admin: { sockte: /run/fopd/admin.sock }'
mark
check "bad configuration: start fails" exits 1 systemctl start fopd
check "bad configuration: exit 78, not tried again" refused 78
check "bad configuration: the journal says what is wrong" \
    logged '._SYSTEMD_UNIT == "fopd.service" and (.MESSAGE | startswith("/etc/fopd/fopd.yaml:1:10: admin.sockte:"))'
configure "$original_config"
forget_failure

with_unit LimitMEMLOCK=64K Restart=no
mark
check "memlock too small: start fails" exits 1 systemctl start fopd
check "memlock too small: exit 71" refused 71
check "memlock too small: the journal says what to raise" \
    logged '.FOPD_EVENT == "fopd.daemon.cannot_start" and (.FOPD_PROBLEM | contains("LimitMEMLOCK="))'
with_unit
forget_failure

if [[ -e /proc/sys/kernel/io_uring_disabled ]]; then
    with_unit Restart=no
    echo 2 >/proc/sys/kernel/io_uring_disabled
    mark
    check "io_uring disabled: start fails" exits 1 systemctl start fopd
    check "io_uring disabled: exit 71" refused 71
    check "io_uring disabled: the journal names the sysctl" \
        logged '.FOPD_EVENT == "fopd.daemon.cannot_start" and (.FOPD_PROBLEM | contains("kernel.io_uring_disabled"))'
    echo 0 >/proc/sys/kernel/io_uring_disabled
    with_unit
    forget_failure
else
    skip "io_uring disabled: start fails, naming the sysctl" "this kernel has no kernel.io_uring_disabled"
fi

### Enabling, upgrading, removing

check "enable: succeeds" systemctl --quiet enable --now fopd
check "enable: ready" is_ready
pid=$(property MainPID)
check "upgrade: succeeds" dpkg --install "$here"/fop*.deb
check "upgrade: the daemon was restarted and is ready" soon 30 is_ready_after "$pid"
runuser -u fopd -- sh -c 'echo precious >/var/lib/fopd/data'
check "remove: succeeds" dpkg --remove fopd
check "remove: the daemon was stopped" is inactive systemctl is-active fopd
check "remove: the configuration stays" test -e $config
check "purge: succeeds" dpkg --purge fopd
check "purge: the configuration is gone" gone /etc/fopd
check "purge: the unit is gone" is "" systemctl list-unit-files --no-legend fopd.service
check "purge: the data stays" is precious cat /var/lib/fopd/data
check "purge: the data's owner stays" is fopd stat --format %U /var/lib/fopd/data
check "client: goes by itself" dpkg --purge fopctl
check "purge: no unit of the guest has failed" is "" systemctl --failed --no-legend

summarise
