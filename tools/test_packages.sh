#!/usr/bin/env bash
# Installs the agent's packages of dist/ and takes them away again: the Debian one in the old root of `make test-wheel`,
# the RPM one in an empty root (without its scripts and what it needs), the static agent in a root without libraries. A kind
# that can't be tried here is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
work=build/packages/try
rm -rf "$work" && mkdir -p "$work"

deb=$(ls -t dist/iodock-agent_*.deb 2>/dev/null | head -n 1 || true)
if [ -n "$deb" ] && root=$(tools/old_root.sh); then
    cp "$deb" "$root/tmp/agent.deb"
    unshare --mount --pid --fork --kill-child sh -ec "
        mkdir -p '$root/proc' && mount -t proc proc '$root/proc'
        exec chroot '$root' sh -ec '
            dpkg -i /tmp/agent.deb >/dev/null && rm /tmp/agent.deb
            iodock-agent once --format json >/tmp/now.json
            grep -q some_time /tmp/now.json || grep -q read_bytes /tmp/now.json
            test -s /usr/lib/systemd/system/iodock-agent.service
            dpkg -P iodock-agent >/dev/null 2>&1
            test ! -e /usr/bin/iodock-agent
        '"
    echo "passed: $deb: installed, ran, purged"
else
    echo "skipped: no Debian package, or no root to install it in"
fi

package=$(ls -t dist/iodock-agent-*.rpm 2>/dev/null | head -n 1 || true)
if [ -n "$package" ] && command -v rpm >/dev/null; then
    top=$(realpath "$work")
    rpm --root "$top" --initdb 2>/dev/null
    rpm --root "$top" -i --nodeps --noscripts "$package" 2>/dev/null
    rpm --root "$top" -V --nodeps iodock-agent 2>/dev/null
    "$top/usr/bin/iodock-agent" --version
    rpm --root "$top" -e --nodeps --noscripts iodock-agent 2>/dev/null
    test ! -e "$top/usr/bin/iodock-agent"
    echo "passed: $package: installed, verified, ran, erased"
else
    echo "skipped: no RPM package, or no rpm to install it with"
fi

archive=$(ls -t dist/iodock-agent-*-static.tar.gz 2>/dev/null | head -n 1 || true)
if [ -n "$archive" ]; then
    top=$work/static
    mkdir -p "$top/proc" && tar -C "$top" --strip-components 1 -xzf "$archive"
    # A root with no library at all.
    unshare --mount --pid --fork --kill-child sh -ec "
        mount -t proc proc '$top/proc'
        chroot '$top' /iodock-agent --version
        chroot '$top' /iodock-agent once --format json >'$work/static.json'"
    grep -q some_time "$work/static.json" || grep -q read_bytes "$work/static.json"
    echo "passed: $archive: unpacked and ran in a root without libraries"
else
    echo "skipped: no static agent in dist/; make static-agent"
fi
