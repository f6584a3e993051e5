#!/bin/bash
# Goal: each file is in the package where it belongs, and in no other; the client, and programs with libfopd, run without
#       the daemon's package; libfabric is needed by the plug-in's package only.
# Method: looks into the packages in a folder, as cpack made them, and runs what is in them from where it was unpacked.
#
#   packages_test.sh FOLDER
set -eu
export LC_ALL=C

folder=$1
version=$(sed -n '1s/^fopd (\(.*\)) .*/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../../systemd/debian/changelog")
# Of the programs: packages that follow a release have its version and a number.
release=${version%+*}
architecture=$(dpkg --print-architecture)
triplet=$(gcc -print-multiarch)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

fail() {
    echo "$*" >&2
    failures=$((failures + 1))
}

deb() {
    echo "$folder/$1_${version}_$architecture.deb"
}

# field PACKAGE FIELD
field() {
    dpkg-deb --field "$(deb "$1")" "$2"
}

# files PACKAGE: what it has, without folders; links without what they point to.
files() {
    dpkg-deb --contents "$(deb "$1")" | awk '$1 !~ /^d/ {print substr($6, 2)}' | sort
}

# has PACKAGE: the package has just the files of standard input, where * stands for any number of characters.
has() {
    local package=$1 pattern file matched wanted=()
    mapfile -t wanted
    files "$package" >"$scratch/files"
    for pattern in "${wanted[@]}"; do
        matched=no
        # shellcheck disable=SC2053  # It is a pattern.
        while read -r file; do [[ $file != $pattern ]] || matched=yes; done <"$scratch/files"
        [[ $matched == yes ]] || fail "$package: $pattern is missing"
    done
    while read -r file; do
        matched=no
        # shellcheck disable=SC2053
        for pattern in "${wanted[@]}"; do [[ $file != $pattern ]] || matched=yes; done
        [[ $matched == yes ]] || fail "$package: $file does not belong there"
    done <"$scratch/files"
}

# is WHAT ACTUAL EXPECTED
is() {
    [[ $2 == "$3" ]] || fail "$1: is '$2', should be '$3'"
}

found=("$folder"/*.deb)
is "packages" "$(printf '%s\n' "${found[@]}" | sort)" \
    "$(for name in fopctl fopd fopd-ofi libfopd-dev libfopd0; do deb "$name"; done | sort)"

has fopd <<EOF
/etc/fopd/fopd.yaml
/usr/bin/fopd
/usr/lib/systemd/system/fopd.service
/usr/lib/sysusers.d/fopd.conf
/usr/lib/tmpfiles.d/fopd.conf
/usr/share/fopd/monitoring/fopd.dashboard.json
/usr/share/fopd/monitoring/fopd.rules.yml
/usr/share/man/man5/fopd.yaml.5.gz
/usr/share/man/man8/fopd.8.gz
/usr/share/doc/fopd/changelog.gz
/usr/share/doc/fopd/copyright
/usr/share/doc/fopd/drop-ins/*.conf
/usr/share/doc/fopd/examples/logrotate
/usr/share/doc/fopd/libfabric-report.c
/usr/share/doc/fopd/running.md
/usr/share/doc/fopd/tutorial.md
/usr/share/doc/fopd/formats/rules.md
/usr/share/doc/fopd/formats/tape_image.py
/usr/share/doc/fopd/reference/events.md
/usr/share/doc/fopd/*.md
EOF
has fopctl <<EOF
/usr/bin/fopctl
/usr/share/bash-completion/completions/fopctl
/usr/share/fish/vendor_completions.d/fopctl.fish
/usr/share/zsh/vendor-completions/_fopctl
/usr/share/man/man1/fopctl.1.gz
/usr/share/doc/fopctl/changelog.gz
/usr/share/doc/fopctl/copyright
EOF
has fopd-ofi <<EOF
/usr/lib/$triplet/fopd/fopd-ofi.so
/usr/share/doc/fopd-ofi/changelog.gz
/usr/share/doc/fopd-ofi/copyright
EOF
has libfopd0 <<EOF
/usr/lib/$triplet/libfopd.so.0
/usr/lib/$triplet/libfopd.so.$release
/usr/share/doc/libfopd0/changelog.gz
/usr/share/doc/libfopd0/copyright
EOF
has libfopd-dev <<EOF
/usr/include/fopd/fopd.h
/usr/include/fopd/fopd.hpp
/usr/lib/$triplet/libfopd.a
/usr/lib/$triplet/libfopd.so
/usr/lib/$triplet/pkgconfig/fopd.pc
/usr/share/man/man3/libfopd.3.gz
/usr/share/doc/libfopd-dev/changelog.gz
/usr/share/doc/libfopd-dev/copyright
EOF

# Maintainer scripts.
packages=(fopd fopctl libfopd0 libfopd-dev fopd-ofi)
for package in "${packages[@]}"; do
    mkdir "$scratch/$package"
    dpkg-deb --control "$(deb "$package")" "$scratch/$package.control"
    dpkg-deb --extract "$(deb "$package")" "$scratch/$package"
done
scripts() {
    (cd "$scratch/$1.control" && echo *)
}
is "control of fopd" "$(scripts fopd)" "conffiles control md5sums postinst postrm prerm"
is "control of fopctl" "$(scripts fopctl)" "control md5sums"
is "control of libfopd0" "$(scripts libfopd0)" "control md5sums shlibs triggers"
is "control of fopd-ofi" "$(scripts fopd-ofi)" "control md5sums"
is "control of libfopd-dev" "$(scripts libfopd-dev)" "control md5sums"
is "shlibs" "$(<"$scratch/libfopd0.control/shlibs")" "libfopd 0 libfopd0 (= $version)"

# What needs what, and what can stand beside itself for another architecture.
[[ $(field fopd Depends) == *"fopctl (= $version)"* ]] || fail "fopd does not depend on fopctl: its unit reloads by it"
[[ $(field libfopd-dev Depends) == *"libfopd0 (= $version)"* ]] || fail "libfopd-dev does not depend on the library"
for package in fopctl libfopd0; do
    [[ $(field "$package" Depends) != *fopd* ]] || fail "$package depends on another of the packages"
    [[ $(field "$package" Depends) != *systemd* ]] || fail "$package depends on systemd"
done
is "Multi-Arch" "$(for name in "${packages[@]}"; do field "$name" Multi-Arch; done | paste -sd ' ')" \
    "foreign foreign same same same"

# libfabric, and the plug-in that brings it.
for package in fopd fopctl libfopd0 libfopd-dev; do
    [[ $(field "$package" Depends) != *libfabric* ]] || fail "$package depends on libfabric"
done
for package in fopd fopctl libfopd0; do
    is "what $package suggests" "$(field "$package" Suggests)" "fopd-ofi (= $version)"
    file=$(find "$scratch/$package/usr" -type f \( -path '*/bin/*' -o -name 'libfopd.so.*' \))
    ! readelf --dynamic "$file" | grep 'NEEDED.*fabric' >&2 || fail "$package: needs libfabric"
    # Programs of another version refuse the plug-in.
    for relation in '<<' '>>'; do
        [[ ", $(field fopd-ofi Breaks)," == *", $package ($relation $version),"* ]] ||
            fail "fopd-ofi can be installed beside $package $relation $version"
    done
done
[[ $(field fopd-ofi Depends) == *"libfabric1 (>= 1.17)"* ]] || fail "fopd-ofi does not depend on libfabric1 (>= 1.17)"
plug_in=$scratch/fopd-ofi/usr/lib/$triplet/fopd/fopd-ofi.so
is "what the plug-in shows" "$(nm --dynamic --defined-only --format=just-symbols "$plug_in")" fopd_ofi_plug_in_1

# The package fopd of the first release has the files of these. It goes when they come.
for package in fopctl libfopd0 libfopd-dev; do
    for word in Breaks Replaces; do
        is "$word of $package" "$(field "$package" "$word")" "fopd (<< 0.1.0+1~)"
    done
done
dpkg --compare-versions 0.1.0 lt '0.1.0+1~' || fail "fopd 0.1.0 can stay beside the client"
! dpkg --compare-versions "$version" lt '0.1.0+1~' || fail "fopd $version cannot be installed beside the client"

# The client by itself. Every library it needs is in a package it depends on, which is not checked here.
fopctl=$scratch/fopctl/usr/bin/fopctl
! ldd "$fopctl" | grep 'not found\|libfopd' >&2 || fail "fopctl: needs a library that is not there"
is "fopctl --version" "$("$fopctl" --version | awk '{print $1, $2}')" "fopctl $release"
status=0
"$fopctl" --timeout 1 --server tcp://127.0.0.1:1 ls >/dev/null 2>"$scratch/words" || status=$?
is "exit status of fopctl where nothing listens" "$status" 69

# The client without the plug-in, unless one is installed, and with it.
ofi() {
    status=0
    words=$("$fopctl" --timeout 5 --server ofi+tcp://127.0.0.1:1 ls 2>&1) || status=$?
}
if [[ ! -e /usr/lib/$triplet/fopd/fopd-ofi.so ]]; then
    ofi
    [[ $status == 1 && $words == *"package fopd-ofi"* ]] ||
        fail "fopctl without the plug-in does not name its package: $status '$words'"
fi
cp --recursive "$scratch/fopd-ofi/." "$scratch/fopctl"
ofi
[[ $status == 69 && $words != *fopd-ofi* ]] || fail "fopctl does not use its plug-in: $status '$words'"

# example PAGE: the program in a man page, as somebody copies it.
example() {
    zcat "$1" | sed -n '/^\.Bd -literal$/,/^\.Ed$/{/^\.[BE]d/d; s/\\e/\\/g; p}'
}

# A program of others, by what -dev says, with the library from its own package.
cp --recursive "$scratch/libfopd0/." "$scratch/libfopd-dev"
cat >"$scratch/program.c" <<'EOF'
#include <fopd/fopd.h>
#include <stdio.h>
int main(void) { return puts(fopd_status_name(FOPD_DENIED)) < 0; }
EOF
export PKG_CONFIG_PATH=$scratch/libfopd-dev/usr/lib/$triplet/pkgconfig
# shellcheck disable=SC2046  # These are words.
gcc -o "$scratch/program" "$scratch/program.c" $(pkg-config --cflags --libs fopd)
is "what a program needs" \
    "$(readelf --dynamic "$scratch/program" | sed -n 's/.*NEEDED.*\[\(libfopd.*\)\]/\1/p')" libfopd.so.0
is "what a program prints" "$(LD_LIBRARY_PATH=$scratch/libfopd0/usr/lib/$triplet "$scratch/program")" denied
example "$scratch/libfopd-dev/usr/share/man/man3/libfopd.3.gz" >"$scratch/example.c"
# shellcheck disable=SC2046
gcc -Wall -Werror -o "$scratch/example" "$scratch/example.c" $(pkg-config --cflags --libs fopd)
words=$(cd "$scratch" && LD_LIBRARY_PATH=$scratch/libfopd0/usr/lib/$triplet ./example 2>&1) || true
[[ $words == ann.key:* ]] || fail "the program of libfopd(3) does not miss its key: '$words'"
# shellcheck disable=SC2046
gcc -o "$scratch/static" "$scratch/program.c" $(pkg-config --cflags fopd) \
    "$scratch/libfopd-dev/usr/lib/$triplet/libfopd.a" $(pkg-config --static --libs-only-l fopd | sed 's/-lfopd//')
is "what a program with the static library prints" "$("$scratch/static")" denied

exit $((failures > 0))
