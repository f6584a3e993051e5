#!/bin/bash
# Goal: the newest entry of the packages' changelog is about the version of the project, which is the one that is given,
#       or about what came after it: 0.1.0+1.
set -u

version=$1
changelog=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/systemd/debian/changelog

read -r name in_brackets rest <"$changelog"
if [[ $name != fopd || ! $in_brackets =~ ^\(${version//./\\.}(\+[0-9]+)?\)$ ]]; then
    echo "$changelog begins with '$name $in_brackets $rest', and the project has the version $version" >&2
    exit 1
fi
