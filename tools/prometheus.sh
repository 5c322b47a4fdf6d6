#!/usr/bin/env bash
# Prints the path of a Prometheus: the one in PATH or in build/prometheus, else one that is fetched there: the
# official release, against its published sha256, or Debian's package, whose archive is signed. Nothing is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
RELEASE=${PROMETHEUS_RELEASE:-2.53.3}
place=build/prometheus

found=$(command -v prometheus || true)
[ -z "$found" ] && [ -x "$place/prometheus" ] && found=$PWD/$place/prometheus
if [ -n "$found" ]; then
    echo "$found"
    exit
fi

mkdir -p "$place"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archive="prometheus-$RELEASE.linux-amd64.tar.gz"
from="https://github.com/prometheus/prometheus/releases/download/v$RELEASE"

official() {
    curl --fail --silent --location --max-time 300 -o "$work/sums" "$from/sha256sums.txt" &&
        curl --fail --silent --location --max-time 300 -o "$work/$archive" "$from/$archive" || return 1
    (cd "$work" && grep " $archive\$" sums | sha256sum --check --quiet) || {
        echo "error: $archive is not what its release says (sha256)" >&2
        exit 1
    }
    tar -xzf "$work/$archive" -C "$work" --strip-components 1
}

debian() {
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
    chmod 755 "$work"
    (cd "$work" && apt-get download -q prometheus >/dev/null 2>&1 && dpkg-deb --extract prometheus_*.deb deb) &&
        mv "$work/deb/usr/bin/prometheus" "$work/prometheus"
}

official || debian || {
    echo "no Prometheus in PATH, and neither $from nor Debian's archive can be had" >&2
    exit 3
}
mv "$work/prometheus" "$place/prometheus"
echo "$PWD/$place/prometheus"
