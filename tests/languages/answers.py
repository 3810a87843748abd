"""As answers.c."""

import sys
import time

import chronosym
import numpy
import pyarrow

timeline = chronosym.open(sys.argv[1])
kinds = [("address", "<u8"), ("time_ns", "<u8"), ("pid", "<u4"), ("is_return", "<u4")]
queries = numpy.fromfile(sys.argv[2], dtype=kinds)
columns = [numpy.ascontiguousarray(queries[name]) for name in ("pid", "time_ns", "address", "is_return")]


def resolve():
    pid, time_ns, address, is_return = columns
    return timeline.resolve(pid, time_ns, address, return_address=is_return)


table = pyarrow.record_batch(resolve())
names = [name for name in table.schema.names if name != "query"]
rows = zip(*(table[name].to_pylist() for name in names))
lines = [""] * len(queries)
for query, row in zip(table["query"].to_pylist(), rows):
    it = dict(zip(names, row))
    texts = {name: it[name] or "" for name in names}
    lines[query] += (
        f"{texts['module']}!{texts['method']}|{texts['signature']}|{texts['file']}:{it['line'] or 0}:{it['column'] or 0}"
        f"|{int(it['inlined'])}|{texts['tier']}|{texts['evidence']}|{texts['certainty']}|{texts['name_reason']}"
        f"|{texts['line_reason']}\t"
    )
sys.stdout.writelines(line + "\n" for line in lines)
if len(sys.argv) > 3:
    best = 1e18
    for _ in range(int(sys.argv[3])):
        start = time.perf_counter_ns()
        resolve()
        best = min(best, time.perf_counter_ns() - start)
    print(f"{best / len(queries):.2f}", file=sys.stderr)
