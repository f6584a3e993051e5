#!/bin/bash
# Goal: fopd drives what Linux takes for tape drives and libraries, as a user who has access to their devices and no
#       other right; and mt, dd and tar read every byte that it has written.
# Method: runs as root in the guest of build-image. First the conformance tests over a drive of scsi_debug, which finds
#         blocks, fails on demand and has an end, but keeps four bytes of each block. Then one long story with a library
#         of tgt, which has two drives and a changer and keeps all bytes, but tells no positions.
set -u

here=$(dirname "${BASH_SOURCE[0]}")
export LC_ALL=C SYSTEMD_PAGER='' SYSTEMD_COLORS=0
config=/etc/fopd/fopd.yaml
# shellcheck source=tests/vm/checks.sh
. "$here/checks.sh"

echo "guest: $(uname -r), booted in $(cut -d ' ' -f 1 /proc/uptime) s"
systemctl is-system-running --wait >/dev/null

### scsi_debug: positions, errors, the end of a tape

# The attribute of the only tape drive: its SCSI address.
address_of() {
    basename "$(readlink -f "/sys/class/scsi_tape/$1/device")"
}
# One test is left out: see the line that skips it.
run_real_tests() {
    FOPD_TEST_TAPE_DRIVE=/dev/nst0 FOPD_TEST_TAPE_FAULTS=$faults \
        "$here/test_devices" "devices real tape*,devices tape*" "~devices tape: a sync in the middle ends nothing"
}
if modprobe scsi_debug ptype=1 num_tgts=1 max_luns=1 delay=0 && modprobe -a st sg && soon 10 test -c /dev/nst0; then
    faults=/sys/kernel/debug/scsi_debug/$(address_of nst0)/error
    check "scsi_debug: the drive has a file for commands" test -c "/dev/$(ls /sys/class/scsi_tape/nst0/device/scsi_generic)"
    check "scsi_debug: it can be told to fail" test -w "$faults"
    check "scsi_debug: conformance, errors, end of medium" run_real_tests
    # A sync is the command that writes no filemarks (SSC: it writes the drive's buffer and changes nothing else).
    skip "scsi_debug: a sync in the middle ends nothing" "its WRITE FILEMARKS marks the end of the data also without a filemark"
    rmmod scsi_debug
else
    skip "scsi_debug: positions, errors, end of medium" "this kernel's scsi_debug has no tapes, which came with 6.15"
fi

### A library of tgt: two drives and a changer

media=/var/lib/tgt-library
tgt() {
    tgtadm --lld iscsi "$@"
}
changer_has() {
    tgt --op update --mode logicalunit --tid 1 --lun 4 --params "$1"
}
make_library() {
    local drive slot=1024 barcode
    mkdir -p "$media" /run/lock/iscsi
    modprobe -a iscsi_tcp st sg || return 1
    tgtd && soon 10 tgt --op show --mode system >/dev/null || return 1
    tgt --op new --mode target --tid 1 -T iqn.2026-01.guest:library || return 1
    for drive in 1 2; do
        # A drive begins with a tape that does not belong to the library.
        tgtimg --op new --device-type tape --barcode "PARK000$drive" --size 1 --type data --file "$media/park$drive" &&
            tgt --op new --mode logicalunit --tid 1 --lun "$drive" -b "$media/park$drive" --device-type=tape &&
            tgt --op update --mode logicalunit --tid 1 --lun "$drive" \
                --params "vendor_id=GUEST,product_id=TAPE$drive,scsi_sn=DRIVE0$drive,removable=1" || return 1
    done
    touch "$media/changer"
    tgt --op new --mode logicalunit --tid 1 --lun 4 -b "$media/changer" --device-type=changer || return 1
    changer_has "media_home=$media" && changer_has element_type=1,start_address=1,quantity=1 &&
        changer_has element_type=2,start_address=1024,quantity=5 &&
        changer_has element_type=3,start_address=32,quantity=1 &&
        # One more than there are drives: its reports lack the last 8 bytes.
        changer_has element_type=4,start_address=256,quantity=3 &&
        changer_has element_type=4,address=256,tid=1,lun=1 &&
        changer_has element_type=4,address=257,tid=1,lun=2 || return 1
    for barcode in A00001L9 A00002L9 A00003L9; do
        tgtimg --op new --device-type tape --barcode "$barcode" --size 64 --type data --file "$media/$barcode" &&
            changer_has "element_type=2,address=$slot,barcode=$barcode,sides=1" || return 1
        slot=$((slot + 1))
    done
    tgt --op bind --mode target --tid 1 -I ALL
}
attach_library() {
    echo "InitiatorName=iqn.2026-01.guest:initiator" >/etc/iscsi/initiatorname.iscsi
    iscsid && iscsiadm --mode discovery --type sendtargets --portal 127.0.0.1 &&
        iscsiadm --mode node --login && soon 20 test -c /dev/nst1 &&
        soon 20 sh -c 'lsscsi -g | grep -q "mediumx.*/dev/sg"' && udevadm settle
}
check "library: tgt makes one" make_library
check "library: the kernel has it" attach_library
lsscsi --generic | sed 's/^/         /'
changer=$(lsscsi --generic | awk '/mediumx/ {print $NF}')
# Which of the kernel's drives has this serial number.
drive_of() {
    local node
    for node in /dev/nst0 /dev/nst1; do
        sg_vpd --page=sn --raw "/dev/$(ls "/sys/class/scsi_tape/${node##*/}/device/scsi_generic")" |
            grep --quiet --text "$1" && echo "$node"
    done
}
first=$(drive_of DRIVE01)
second=$(drive_of DRIVE02)
check "library: both drives have serial numbers" test -n "$first" -a -n "$second"
for node in "$first" "$second"; do mt -f "$node" offline; done

### fopd with it

keys=$(mktemp --directory)
admin() {
    fopctl --key "$keys/admin.key" "$@"
}
is_ready() {
    [[ $(systemctl show fopd -P ActiveState) == active ]] && fopctl --json status | jq --exit-status '.state == "ready"' >/dev/null
}
configure() {
    cat >"$config" <<CONFIG
auth: { principals: /etc/fopd/principals.yaml }
pools:
  - { name: fast }
  - { name: cold, family: tape, staging: fast }
devices:
  - { name: d0, path: /var/lib/fopd/d0.img, size: 256MiB, thin: true, pool: fast }
libraries:
  - name: tl0
    kind: scsi
    path: $1
    drive_paths: [$2]
    pool: cold
CONFIG
}
media_are() {
    admin --json media | jq --exit-status "$1"
}
# Of a block that has more than half of what tar asks for, tgt sends only a part, and fopd reads it again. For tar the
# sizes here are such that the last block of a tape file, the only short one, is smaller.
# put NAME SIZE: a file of that size, as an object of the pool on tape.
put() {
    head --bytes="$2" /dev/urandom >"$keys/$1" && admin put "$keys/$1" "$1" --pool cold
}
has_left_the_disk() {
    admin --json stat "$1" --pool cold | jq --exit-status '.allocated == 0'
}
comes_back() {
    admin --timeout 300 get "$1" "$keys/back" --pool cold && cmp "$keys/$1" "$keys/back"
}

check "package: installs" dpkg --install "$here"/fopctl_*.deb "$here"/fopd_*.deb
configure "$changer" "$first, $second"
check "keys: one for everything" \
    fopctl key create admin --rights read,write,create,delete,admin --out "$keys/admin.key"
check "devices: without the drop-in, there are none for fopd" systemctl start fopd
check "devices: the library is not open" \
    soon 20 sh -c 'journalctl --boot FOPD_EVENT=fopd.library.not_open | grep --quiet tl0'
systemctl stop fopd
install -D -m 644 /usr/share/doc/fopd/drop-ins/tape.conf /etc/systemd/system/fopd.service.d/tape.conf
systemctl daemon-reload
configure "$first" "$second"
check "configuration: a drive is no changer" \
    sh -c "fopd --check-config 2>&1; test \$? = 78"
check "configuration: the message names key and device" \
    sh -c "fopd --check-config 2>&1 | grep --fixed-strings 'libraries[0].path: $first is not a media changer'"
configure "$changer" "$changer"
check "configuration: a changer is no drive" exits 78 fopd --check-config
configure "$changer" "$second, $first"
check "configuration: is right" fopd --check-config

check "start: succeeds" systemctl start fopd
check "start: ready" soon 60 is_ready
capabilities() {
    awk '$1 == "CapEff:" {print $2}' "/proc/$(systemctl show fopd -P MainPID)/status"
}
check "start: with no capability" is 0000000000000000 capabilities
check "library: is open" soon 60 sh -c 'journalctl --boot FOPD_EVENT=fopd.library.open | grep --quiet tl0'
check "library: its cartridges are blank" \
    soon 30 media_are '[.media[] | select(.state == "blank") | .name] == ["A00001L9", "A00002L9", "A00003L9"]'

check "format: labels a cartridge" admin --timeout 120 format A00001L9 --pool cold
check "put: an object" put one 2950001
check "put: a small one" put two 1
check "sync: they are on tape" admin --timeout 300 sync --pool cold
check "release: one leaves the disk" admin release one --pool cold
check "release: two leaves the disk" admin release two --pool cold
check "release: nothing is left of one" has_left_the_disk one
# The drives that another program has open.
busy_drives() {
    local node
    for node in "$first" "$second"; do
        if mt -f "$node" status 2>&1 | grep --quiet --ignore-case busy; then echo "$node"; fi
    done
}
busy=$(busy_drives)
check "drive: fopd has the one with the tape to itself" test "$busy" = "$first" -o "$busy" = "$second"
check "get: one comes back" comes_back one
# In the configuration the second drive is the first.
loaded=tl0-drive1
other=tl0-drive0
if [[ $busy == "$second" ]]; then
    loaded=tl0-drive0
    other=tl0-drive1
fi
check "unload: the drive with the tape" admin --timeout 120 unload $loaded
check "unload: the changer has it back" \
    sh -c "mtx -f $changer status | grep 'Storage Element.*A00001L9'"
check "unload: others can use the drive" is "" busy_drives
check "load: in the other drive" admin --timeout 120 load A00001L9 $other
check "get: two comes back by the other drive" comes_back two

### Killed in between

pid=$(systemctl show fopd -P MainPID)
check "kill: an object that waits for tape" put three 29900003
tape_bytes() {
    stat --format %s "$media/A00001L9"
}
before=$(tape_bytes)
has_grown() {
    (($(tape_bytes) > before + 2000000))
}
admin --timeout 60 sync --pool cold >/dev/null 2>&1 &
deadline=$((SECONDS + 60))
until has_grown || ((SECONDS >= deadline)); do :; done
kill -KILL "$pid"
written=$(($(tape_bytes) - before))
check "kill: in the middle of a file" test "$written" -gt 0 -a "$written" -lt 29900003
# It waits for the next daemon.
wait
is_another() {
    [[ $(systemctl show fopd -P MainPID) != "$pid" ]] && is_ready
}
check "kill: ready again" soon 120 is_another
check "kill: sync ends" admin --timeout 300 sync --pool cold
check "kill: three leaves the disk" admin release three --pool cold
check "kill: three comes back" comes_back three
check "kill: one can be released again" admin release one --pool cold
pid=$(systemctl show fopd -P MainPID)
kill -KILL "$pid"
check "kill: ready again, with a tape in a drive" soon 120 is_another
check "kill: one comes back" comes_back one
check "media: no cartridge is suspect or failed" media_are 'all(.media[]; .state | IN("blank", "ok"))'
check "library: no operation has failed" is "" sh -c 'journalctl --boot --output cat FOPD_EVENT=fopd.library.operation_failed'
check "stop: with a tape in a drive" systemctl stop fopd

### Without fopd

# mt, dd and tar read the cartridge, in the first drive.
for node in "$first" "$second"; do mt -f "$node" offline; done
mtx -f "$changer" status | sed 's/^/         /'
to_first_drive() {
    local slot=1 element
    for element in 0 1; do
        mtx -f "$changer" status | grep --quiet "Data Transfer Element $element:Full" || continue
        while mtx -f "$changer" status | grep --quiet "Storage Element $slot:Full"; do slot=$((slot + 1)); done
        mtx -f "$changer" unload "$slot" "$element" || return 1
    done
    slot=$(mtx -f "$changer" status | sed -n 's/.*Storage Element \([0-9]*\):Full.*A00001L9.*/\1/p')
    mtx -f "$changer" load "$slot" 0
}
recovered=$keys/recovered
mkdir "$recovered"
recover() {
    local number
    mt -f "$first" rewind && mt -f "$first" setblk 0 || return 1
    dd if="$first" bs=80 count=1 status=none | grep --quiet --text '^VOL1A00001 ' || { echo "no VOL1" && return 1; }
    for number in {1..20}; do
        mt -f "$first" rewind
        mt -f "$first" fsf $((3 * (number - 1) + 1)) 2>/dev/null || return 0
        tar -b 512 --directory "$recovered" -xf "$first" || return 0
    done
}
is_recovered() {
    local file
    for file in "$recovered"/*; do cmp --quiet "$keys/$1" "$file" && return 0; done
    ls -l "$recovered"
    return 1
}
check "mtx: moves the cartridge" to_first_drive
check "mt, dd, tar: read it" recover
for name in one two three; do
    check "tar: every byte of $name" is_recovered "$name"
done

summarise
