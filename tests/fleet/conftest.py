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
COMMAND = str(Path(sysconfig.get_path("scripts")) / "chronosym")


@pytest.fixture(scope="session")
def traces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    for name in ("all", "linux", "memory", "rich"):
        with zipfile.ZipFile(TRACES / f"{name}.nettrace.zip") as archive:
            (folder / f"{name}.nettrace").write_bytes(archive.read(archive.namelist()[0]))
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


@pytest.fixture(scope="session")
def expected(samples):
    """Self and total time of each named function, in all traces."""
    totals = defaultdict(lambda: [0, 0])
    for of_trace in samples.values():
        for sample in of_trace:
            weight = sample.get("weight_ns", 0)
            labels = [label(frame) for frame in sample["frames"]]
            totals[labels[0]][0] += weight
            for one in set(labels):
                totals[one][1] += weight
    totals.pop(None, None)
    return dict(totals)


def named(totals):
    """The totals of named functions: the command lists code without a name in other words."""
    return {
        label: [own, total]
        for label, own, total in totals
        if not label.startswith("0x") and "!+0x" not in label and "!0x0" not in label
    }
