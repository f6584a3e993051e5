#!/bin/bash
# Goal: fopd and its clients talk over an RDMA adapter (verbs://), and whoever is killed meanwhile leaves the others and
#       every byte alone.
# Method: runs as root in the guest of build-image, with the kernel's emulated adapter (soft RoCE, rdma_rxe) over a network
#         of this host alone. First the conformance tests of transports, then one long story with the packages.
set -u

here=$(dirname "${BASH_SOURCE[0]}")
export LC_ALL=C SYSTEMD_PAGER='' SYSTEMD_COLORS=0
config=/etc/fopd/fopd.yaml
host=10.9.9.1
# shellcheck source=tests/vm/checks.sh
. "$here/checks.sh"

echo "guest: $(uname -r), booted in $(cut -d ' ' -f 1 /proc/uptime) s"
systemctl is-system-running --wait >/dev/null

### The adapter

# adapter NETWORK ADAPTER ADDRESS: an emulated adapter with a network that has the address.
adapter() {
    ip link add "$1" type dummy && ip address add "$3/24" dev "$1" && ip link set "$1" up &&
        rdma link add "$2" type rxe netdev "$1"
}
check "adapter: the kernel emulates one" modprobe -a rdma_rxe ib_uverbs rdma_ucm
check "packages: install" dpkg --install "$here"/fopctl_*.deb "$here"/fopd_*.deb "$here"/fopd-ofi_*.deb
no_adapter() {
    fopctl --server "verbs://$host:31470" --timeout 10 ping 2>&1 | grep --fixed-strings 'find an RDMA adapter'
}
check "no adapter: fopctl says so" no_adapter
check "adapter: there is one" adapter rdma0 rxe0 $host

run_conformance() {
    FOPD_TEST_VERBS=$host "$here/test_fabric" "fabric transport:*,fabric verbs:*"
}
started=$SECONDS
check "conformance: of connections, messages and transfers" run_conformance
echo "         it took $((SECONDS - started)) s"
run_alone() {
    FOPD_TEST_VERBS=$host "$here/test_fabric" "fabric verbs alone:*"
}
check "memory: no machine opens while libfabric caches registrations" run_alone

### fopd with it

keys=$(mktemp --directory)
export FOPD_SERVER=verbs://$host:31470
admin() {
    fopctl --key "$keys/admin.key" "$@"
}
is_ready() {
    [[ $(systemctl show fopd -P ActiveState) == active ]] && fopctl --json status | jq --exit-status '.state == "ready"' >/dev/null
}
is_another() {
    [[ $(systemctl show fopd -P MainPID) != "$1" ]] && is_ready
}
# round NAME SIZE: a file of that size becomes an object, and comes back.
round() {
    head --bytes="$2" /dev/urandom >"$keys/$1" && admin put "$keys/$1" "$1" && comes_back "$1"
}
comes_back() {
    rm -f "$keys/back"
    admin get "$1" "$keys/back" && cmp "$keys/$1" "$keys/back"
}
no_session_is_left() {
    [[ $(fopctl --json sessions | jq '.sessions | length') == 0 ]]
}
# What the daemon has logged as an error; but for localities that stood still together with the whole guest.
errors() {
    journalctl --sync
    journalctl --boot --output json --priority err _COMM=fopd | jq --raw-output '[.FOPD_EVENT, .MESSAGE] | join(" ")' |
        if [[ -s $pauses ]]; then grep --invert-match --fixed-strings fopd.daemon.locality_stuck; else cat; fi
}
# Writes down when this guest had no processor for seconds, as on a host with much else to do; and, as the kernel sees it,
# where a thread of the daemon is that waits uninterruptibly for longer.
watch_pauses() {
    local before=$EPOCHSECONDS task stack
    local -A stacks
    while sleep 1; do
        if ((EPOCHSECONDS - before > 3)); then echo "the guest had no processor for $((EPOCHSECONDS - before)) s" >>"$pauses"; fi
        before=$EPOCHSECONDS
        for task in "/proc/$(systemctl show fopd -P MainPID)/task"/*; do
            stack=
            if grep --quiet --no-messages '^State:.D' "$task/status"; then stack=$(cat "$task/stack"); fi 2>/dev/null
            if [[ -n $stack && $stack == "${stacks[$task]-}" ]]; then echo "$task: $stack" >>"$waits"; fi
            stacks[$task]=$stack
        done
    done
}
pauses=$keys/pauses
waits=$keys/waits
touch "$pauses" "$waits"
watch_pauses &
cat >"$config" <<CONFIG
auth: { principals: /etc/fopd/principals.yaml }
fabric: { listen: [ "verbs://$host:31470" ] }
localities: { buffers: 32MiB }
pools: [{ name: fast }]
devices:
  - { name: d0, path: /var/lib/fopd/d0.img, size: 256MiB, thin: true, pool: fast }
CONFIG
check "keys: one for everything" \
    fopctl key create admin --rights read,write,create,delete,admin --out "$keys/admin.key"
check "keys: one that is revoked" fopctl key create gone --out "$keys/gone.key"
check "keys: revoke it" fopctl key revoke gone
install -D -m 644 /usr/share/doc/fopd/drop-ins/rdma.conf /etc/systemd/system/fopd.service.d/rdma.conf
systemctl daemon-reload
check "start: succeeds" systemctl start fopd
check "start: ready" soon 60 is_ready
check "ping: is answered" admin ping
for size in 0 1 4095 12288 12289 1000000 16777216; do
    check "put and get: $size bytes" round "object-$size" $size
done
check "key: a wrong one is refused" exits 77 fopctl --key "$keys/gone.key" ls
check "key: none is refused" exits 77 fopctl ls
check "session: all have ended" soon 60 no_session_is_left

### Killed in between

head --bytes=64M /dev/urandom >"$keys/large"
has_session() {
    [[ $(fopctl --json sessions | jq '.sessions | length') -gt 0 ]]
}
# Kills a client that stores a file, once a session of it is there.
kill_client() {
    admin put "$keys/large" large >/dev/null 2>&1 &
    local client=$!
    soon 30 has_session || return 1
    kill -KILL "$client"
    wait "$client" 2>/dev/null
    soon 60 no_session_is_left
}
for number in 1 2 3; do
    check "killed client $number: its session ends" kill_client
    check "killed client $number: others are served" comes_back object-16777216
done

pid=$(systemctl show fopd -P MainPID)
admin put "$keys/large" large >"$keys/out" 2>&1 &
client=$!
check "killed daemon: a client is storing" soon 30 has_session
kill -KILL "$pid"
check "killed daemon: ready again, at the same address" soon 120 is_another "$pid"
waited=0
wait "$client" || waited=$?
echo "         the client that was storing ended with $waited: $(tail -n 1 "$keys/out")"
check "killed daemon: what it had comes back" comes_back object-16777216
check "killed daemon: the client can store again" round object-after 16777216
check "log: no error" is "" errors
sed 's/^/         /' "$pauses" "$waits"

### Several adapters

check "stop: succeeds" systemctl stop fopd
check "stop: cleanly" is success systemctl show fopd -P Result
check "second adapter: there is one" adapter rdma1 rxe1 10.9.10.1
says_several() {
    ! systemctl start fopd && journalctl --boot --unit fopd --output cat --lines 20 | grep --fixed-strings 'several RDMA adapters'
}
check "second adapter: the daemon says that it takes one only" says_several
systemctl reset-failed fopd
mkdir -p /run/systemd/system/fopd.service.d
printf '[Service]\nEnvironment=FI_VERBS_DEVICE_NAME=rxe0\n' >/run/systemd/system/fopd.service.d/adapter.conf
systemctl daemon-reload
export FI_VERBS_DEVICE_NAME=rxe0
check "second adapter: the daemon starts with one that is named" systemctl start fopd
check "second adapter: ready" soon 60 is_ready
check "second adapter: clients come by that one" comes_back object-16777216

summarise
