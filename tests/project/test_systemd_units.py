"""Tests the systemd units: systemd accepts them, they drop rights that they do not need, and their commands
work as documented."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from iodock.file_system.probe.store import Losses, ProbeStore
from places import ROOT

UNITS = sorted((ROOT / "integrations" / "systemd").iterdir())
MOST_EXPOSED = {"iodock-agent.service": 50, "iodock-monitor.service": 30, "iodock-probe@.service": 30,
                "iodock-probe-page@.service": 20}  # fmt: skip
"""Tenths of the exposure that systemd-analyze reports: from 0 to 100. The agent runs as root. systemd 252
reports 37, 17, 16 and 6; other versions weigh slightly differently."""
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """Copies all units, with programs that exist in place of iodock's."""
    folder = tmp_path / "units"
    folder.mkdir()
    program = tmp_path / "program"
    shutil.copy("/bin/true", program)
    for unit in UNITS:
        text = re.sub(r"^(ExecStart=)\S+", rf"\g<1>{program}", unit.read_text(), flags=re.MULTILINE)
        (folder / unit.name).write_text(text)
    return folder


def analyze(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@needs_systemd
@pytest.mark.parametrize("unit", [one.name for one in UNITS])
def test_systemd_accepts_every_unit(unit: str, units: Path) -> None:
    done = analyze("verify", "--man=no", units / unit)
    assert done.returncode == 0 and unit not in done.stderr, done.stderr


@needs_systemd
def test_errors_in_a_unit_are_detected(units: Path) -> None:
    """systemd-analyze must reject a wrong value, so the check of the units can fail."""
    unit = units / "iodock-probe@.service"
    unit.write_text(unit.read_text().replace("ProtectClock=yes", "ProtectClock=sometimes"))
    assert unit.name.partition("@")[0] in analyze("verify", "--man=no", unit).stderr


@needs_systemd
@pytest.mark.parametrize("unit", sorted(MOST_EXPOSED))
def test_units_drop_unneeded_privileges(unit: str, units: Path) -> None:
    done = analyze(
        "security", "--offline=yes", "--no-pager", f"--threshold={MOST_EXPOSED[unit]}", units / unit
    )
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd can't tell of a file")
    assert done.returncode == 0, done.stdout


def test_the_security_of_every_service_is_tested() -> None:
    assert {one.name for one in UNITS if one.suffix == ".service"} == set(MOST_EXPOSED)


def section(unit: str, name: str) -> dict[str, list[str]]:
    """Returns a section of a unit. A key may occur several times."""
    text = (ROOT / "integrations" / "systemd" / unit).read_text()
    lines = re.findall(
        r"^([A-Za-z]+)=(.*)$", text.partition(f"[{name}]")[2].partition("\n[")[0], re.MULTILINE
    )
    return {key: [value for found, value in lines if found == key] for key, _ in lines}


def started(unit: str, folder: Path, state: Path, options: str) -> list[subprocess.CompletedProcess[str]]:
    """Runs the unit's commands as systemd expands them for the instance `scratch-probe`."""
    given = {"%f": str(folder), "%S": str(state), "%i": "scratch-probe", "$IODOCK_OPTIONS": options}
    done = []
    for line in section(unit, "Service")["ExecStart"]:
        for name, value in given.items():
            line = line.replace(name, value)
        assert "%" not in line and "$" not in line
        program, *arguments = shlex.split(line)
        assert program == "/opt/iodock/bin/iodock"
        command = [sys.executable, "-m", "iodock", *arguments]
        done.append(
            subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=os.environ)
        )
    return done


def test_the_probe_services_run_and_write_a_page(tmp_path: Path) -> None:
    folder, state = tmp_path / "watched", tmp_path / "state"
    folder.mkdir()
    # The folder is empty, as systemd creates it before the start.
    (store,) = section("iodock-probe@.service", "Service")["StateDirectory"]
    (state / store.replace("%i", "scratch-probe")).mkdir(parents=True)
    (pages,) = section("iodock-probe-page@.service", "Service")["StateDirectory"]
    (state / pages).mkdir()
    (done,) = started("iodock-probe@.service", folder, state, "--every 1s --rounds 2")
    assert (done.returncode, done.stderr) == (0, "") and not list(folder.iterdir())
    (condition,) = section("iodock-probe-page@.service", "Unit")["ConditionPathExists"]
    kept = Path(condition.replace("%S", str(state)).replace("%i", "scratch-probe"))
    assert len(list(ProbeStore.open(kept).records(Losses()))) == 4
    for done in started("iodock-probe-page@.service", folder, state, "--since 30d --lang en"):
        assert (done.returncode, done.stderr) == (0, "")
    written = {one.name: one.read_text() for one in (state / pages).iterdir()}
    assert set(written) == {"scratch-probe.html", "scratch-probe.motd"}
    assert "<html" in written["scratch-probe.html"] and written["scratch-probe.motd"].startswith(
        f"{folder}: ok"
    )
