#!/usr/bin/env bash
# Makes dist/iodock-agent_*.deb and iodock-agent-*.rpm from the agent in the newest wheel: `make packages`. A kind whose tool
# is missing (dpkg-deb, rpmbuild) is skipped, and says so.
set -euo pipefail
cd "$(dirname "$0")/.."
work=build/packages
wheel=${WHEEL:-$(ls -t dist/iodock-*.whl 2>/dev/null | head -n 1 || true)}
[ -n "$wheel" ] || { echo "error: no wheel in dist/; make wheel" >&2; exit 1; }

rm -rf "$work" && mkdir -p "$work/wheel" "$work/files" dist
python3 -m zipfile -e "$wheel" "$work/wheel"
data=$(echo "$work"/wheel/*.data)
about=$(echo "$work"/wheel/*.dist-info)
version=$(sed -n 's/^Version: //p' "$about/METADATA")
cp "$data/scripts/iodock-agent" "$data/data/share/man/man1/iodock-agent.1" "$about"/licenses/* "$work/files/"
cp packaging/README-agent "$work/files/README"
# A package's programs lie in /usr/bin.
sed 's#/usr/local/bin/iodock-agent#/usr/bin/iodock-agent#; /^#   install /d' integrations/systemd/iodock-agent.service \
    >"$work/files/iodock-agent.service"
chmod 755 "$work/files/iodock-agent"

deb() {
    local root=$work/deb
    local doc=$root/usr/share/doc/iodock-agent
    install -D -m 755 "$work/files/iodock-agent" "$root/usr/bin/iodock-agent"
    install -D -m 644 "$work/files/iodock-agent.service" "$root/usr/lib/systemd/system/iodock-agent.service"
    install -D -m 644 "$work/files/iodock-agent.1" "$root/usr/share/man/man1/iodock-agent.1"
    gzip -9n "$root/usr/share/man/man1/iodock-agent.1"
    install -D -m 644 "$work/files/README" "$doc/README"
    { echo "iodock-agent is under the Apache License 2.0 (/usr/share/common-licenses/Apache-2.0). Code of others in it:"
      echo; cat "$work/files/THIRD_PARTY_LICENSES.txt"; } >"$doc/copyright"
    printf 'iodock-agent (%s-1) unstable; urgency=medium\n\n  * See CHANGELOG.md of iodock.\n\n -- %s  %s\n' "$version" \
        "iodock's developers <iodock@invalid.invalid>" "$(git log -1 --format=%aD)" | gzip -9n >"$doc/changelog.Debian.gz"
    chmod 644 "$doc"/*
    mkdir -p "$root/DEBIAN"
    sed "s/@VERSION@/$version/; s/@SIZE_KIB@/$(du -sk "$root" | cut -f1)/" packaging/debian/control.in >"$root/DEBIAN/control"
    install -m 755 packaging/debian/postinst packaging/debian/prerm packaging/debian/postrm "$root/DEBIAN/"
    dpkg-deb --root-owner-group --build "$root" "dist/iodock-agent_${version}-1_amd64.deb" >/dev/null
}

rpm() {
    local top
    top=$(realpath "$work/rpm")
    mkdir -p "$top/SOURCES" && cp "$work"/files/* "$top/SOURCES/"
    rpmbuild --quiet -bb --define "_topdir $top" --define "agent_version $version" --define "_binary_payload w9.xzdio" \
        packaging/rpm/iodock-agent.spec
    cp "$top"/RPMS/x86_64/*.rpm dist/
}

if command -v dpkg-deb >/dev/null; then deb; else echo "skipped: no dpkg-deb here, so no Debian package"; fi
if command -v rpmbuild >/dev/null; then rpm; else echo "skipped: no rpmbuild here, so no RPM package"; fi
ls -l dist/iodock-agent*
