"""As answers.c."""

import sys
import time

import chronosym
import numpy
import pyarrow

timeline = chronosym.open(sys.argv[1])
queries = numpy.fromfile(sys.argv[2], dtype=chronosym.QUERY)
resolver = timeline.resolver()

rows = pyarrow.record_batch(resolver.resolve(queries))["frames"].to_pylist()
table = pyarrow.record_batch(resolver.frames())
texts = []
for it in table.to_pylist():
    name = {key: value or "" for key, value in it.items()}
    texts.append(
        f"{name['module']}!{name['method']}|{name['signature']}|{name['file']}:{it['line'] or 0}:{it['column'] or 0}"
        f"|{int(it['inlined'])}|{name['tier']}|{name['evidence']}|{name['certainty']}|{name['name_reason']}"
        f"|{name['line_reason']}\t"
    )
lines = ["".join(texts[frame] for frame in frames) for frames in rows]
sys.stdout.writelines(line + "\n" for line in lines)
if len(sys.argv) > 3:
    best = 1e18
    for _ in range(int(sys.argv[3])):
        start = time.perf_counter_ns()
        resolver.resolve(queries)
        best = min(best, time.perf_counter_ns() - start)
    print(f"{best / len(queries):.2f}", file=sys.stderr)
