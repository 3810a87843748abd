#!/usr/bin/env python3
"""Runs all parts of the guide on one machine: agent, object storage, query, flame graphs.

    one-machine.py [--store URI] [--output DIR] TRACE…

Needs `pip install chronosym[spark] duckdb`, of which this script uses pyarrow and duckdb. URI is a folder as file:///path, or a bucket
as s3://bucket/path?endpoint_override=127.0.0.1:9000&scheme=http with the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
"""

import argparse
import csv
import subprocess
import tempfile
from pathlib import Path

import duckdb
import pyarrow.dataset
import pyarrow.fs

from chronosym.addresses import command

# Stacks of all recordings, outermost frame first.
FOLDED = """
select array_to_string(list_reverse(stack), ';') as path, cast(sum(weight) as bigint) as ns
from profiles where unit = 'ns' and len(stack) > 0 group by stack order by path
"""

# The columns of Grafana's flame graph, by the query of the guide.
GRAFANA = Path(__file__).with_name("README.md").read_text().split("```sql duckdb-grafana\n")[1].split("```")[0]


def agent(traces, filesystem, root):
    """What runs on each machine: writes the tables of its recordings, and uploads them."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([command(), "export", "-o", folder, "--", *traces], check=True)
        subprocess.run([command(), "export", "--sums", "-o", folder, "--", *traces], check=True)
        pyarrow.fs.copy_files(folder, root, destination_filesystem=filesystem)


def query(filesystem, root, output):
    """Flame graphs of the sums of all machines."""
    profiles = pyarrow.dataset.dataset(f"{root}/profiles", filesystem=filesystem)
    connection = duckdb.connect()
    connection.register("profiles", profiles)
    with open(output / "fleet.folded", "w") as out:
        out.writelines(f"{path} {ns}\n" for path, ns in connection.execute(FOLDED).fetchall())
    with open(output / "grafana.csv", "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["level", "value", "label", "self"])
        writer.writerows(connection.execute(GRAFANA).fetchall())


def report(filesystem, root, output):
    """The report of all samples, with their times."""
    with tempfile.TemporaryDirectory() as folder:
        for table in ("samples", "stacks", "frames"):
            Path(folder, table).mkdir()
            pyarrow.fs.copy_files(f"{root}/{table}", f"{folder}/{table}", source_filesystem=filesystem)
        subprocess.run([command(), "stacks", folder, "-o", output / "fleet.html"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", metavar="URI")
    parser.add_argument("--output", metavar="DIR", type=Path, default=Path("fleet"))
    parser.add_argument("traces", metavar="TRACE", nargs="+")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    store = given.store or (given.output / "store").resolve().as_uri()
    filesystem, root = pyarrow.fs.FileSystem.from_uri(store)
    filesystem.create_dir(root)
    agent(given.traces, filesystem, root)
    query(filesystem, root, given.output)
    report(filesystem, root, given.output)
    print(f"{given.output}: fleet.folded, grafana.csv and fleet.html")


main()
