"""Traces, and what the command says of them."""

import json
import os
import subprocess
import sysconfig
import zipfile
from collections import defaultdict
from pathlib import Path

import pytest

TRACES = Path(os.environ.get("CHRONOSYM_TRACES") or Path(__file__).parents[2] / "testdata/clr10/traces")
GUIDE = Path(__file__).parents[2] / "docs/fleet"
RECORDINGS = int(os.environ.get("CHRONOSYM_RECORDINGS") or 200)
# Writes nettrace recordings of any size; built with the tests.
WRITER = Path(__file__).parents[2] / "target/debug/examples/nettrace_samples"
COMMAND = str(Path(sysconfig.get_path("scripts")) / "chronosym")


@pytest.fixture(scope="session")
def traces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    for name in ("all", "linux", "memory", "rich"):
        with zipfile.ZipFile(TRACES / f"{name}.nettrace.zip") as archive:
            (folder / f"{name}.nettrace").write_bytes(archive.read(archive.namelist()[0]))
    return folder


def moved(recording, number):
    """A nettrace recording as if it were of another process, some hours later."""
    start = recording.index(b"\x05\x00\x00\x00Trace\x06") + 10
    # A SYSTEMTIME, the clock and its frequency, the size of a pointer, and the process id.
    hour, pid = start + 8, start + 36
    assert 0 < int.from_bytes(recording[pid : pid + 4], "little") < 1 << 22
    changed = bytearray(recording)
    changed[hour : hour + 2] = (number % 24).to_bytes(2, "little")
    changed[pid : pid + 4] = (FIRST_PID + number).to_bytes(4, "little")
    return bytes(changed)


# The traces of one process each, and the first process id of their copies.
MOVED = ("all", "memory", "rich")
FIRST_PID = 1_000_000


@pytest.fixture(scope="session")
def fleet(tmp_path_factory, traces):
    """Recordings of many processes: copies of traces with other process ids and times."""
    folder = tmp_path_factory.mktemp("fleet")
    recordings = [(traces / f"{name}.nettrace").read_bytes() for name in MOVED]
    for number in range(RECORDINGS):
        path = folder / f"{number:03}.nettrace"
        path.write_bytes(moved(recordings[number % len(MOVED)], number))
    return folder


@pytest.fixture(scope="session")
def command():
    def run(*words):
        return subprocess.run([COMMAND, *map(str, words)], check=True, capture_output=True, text=True).stdout

    return run


def block(language):
    """The block of the guide with this language."""
    return (GUIDE / "README.md").read_text().split(f"```{language}\n")[1].split("```")[0]


def label(frame):
    """The label of a frame with a name."""
    if "name" not in frame:
        return None
    return f"{frame['module']}!{frame['name']}" if "module" in frame else frame["name"]


@pytest.fixture(scope="session")
def samples(traces, command):
    """The samples of each trace, as the command lists them."""
    paths = sorted(traces.glob("*.nettrace"))
    lines = {path: command("stacks", "--format", "jsonl", path).splitlines() for path in paths}
    return {path: [json.loads(line) for line in lines] for path, lines in lines.items()}


def totals_of(recordings):
    """Self and total time of each named function, in all recordings."""
    totals = defaultdict(lambda: [0, 0])
    for samples in recordings:
        for sample in samples:
            weight = sample.get("weight_ns", 0)
            labels = [label(frame) for frame in sample["frames"]]
            totals[labels[0]][0] += weight
            for one in set(labels):
                totals[one][1] += weight
    totals.pop(None, None)
    return dict(totals)


@pytest.fixture(scope="session")
def expected(samples):
    return totals_of(samples.values())


@pytest.fixture(scope="session")
def samples_of_fleet(traces, samples):
    """The samples of each recording of the fleet."""
    return [samples[traces / f"{MOVED[number % len(MOVED)]}.nettrace"] for number in range(RECORDINGS)]


@pytest.fixture(scope="session")
def expected_of_fleet(samples_of_fleet):
    return totals_of(samples_of_fleet)


def named(totals):
    """The totals of named functions: the command lists code without a name in other words."""
    return {
        label: [own, total]
        for label, own, total in totals
        if not label.startswith("0x") and "!+0x" not in label and "!0x0" not in label
    }
