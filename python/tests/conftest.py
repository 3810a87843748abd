import pathlib
import zipfile

import pytest

import chronosym

TRACES = pathlib.Path(__file__).parents[2] / "testdata/clr10/traces"


@pytest.fixture(scope="session")
def trace(tmp_path_factory):
    """A trace as a file of its own."""
    path = tmp_path_factory.mktemp("trace") / "reuse.nettrace"
    with zipfile.ZipFile(TRACES / "reuse.nettrace.zip") as archive:
        path.write_bytes(archive.read(archive.namelist()[0]))
    return path


@pytest.fixture(scope="session")
def timeline(trace):
    return chronosym.open(trace)
