"""The script of the guide: agent, object storage, query, flame graphs."""

import csv
import subprocess
import sys

from conftest import GUIDE


def test_all_parts_run_on_one_machine(traces, samples, tmp_path):
    script = [sys.executable, GUIDE / "one-machine.py", "--output", tmp_path, "--store", (tmp_path / "store").as_uri()]
    subprocess.run([*script, *sorted(traces.glob("*.nettrace"))], check=True)
    with_stack = [sample for of_trace in samples.values() for sample in of_trace if sample["frames"]]
    weight = sum(sample.get("weight_ns", 0) for sample in with_stack)

    folded = (tmp_path / "fleet.folded").read_text().splitlines()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded) == weight

    with open(tmp_path / "grafana.csv", newline="") as file:
        rows = [(int(row["level"]), int(row["value"]), row["label"], int(row["self"])) for row in csv.DictReader(file)]
    assert rows[0] == (0, weight, "all", 0)
    # Depth first, and each value is that of the frame itself and of its callees.
    path, values = [], {}
    for level, value, label, own in rows:
        assert level <= len(path)
        path[level:] = [label]
        assert tuple(path) not in values
        values[tuple(path)] = value - own
        if level > 0:
            values[tuple(path[:-1])] -= value
    assert set(values.values()) == {0}
    leaves = {";".join(path[1:]) for path in values}
    assert {line.rsplit(" ", 1)[0] for line in folded} <= leaves

    assert (tmp_path / "fleet.html").stat().st_size > 10_000
