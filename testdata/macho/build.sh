#!/bin/bash
# build.sh [OUTDIR]: the programs, their dSYM bundles and the answers of llvm-symbolizer. Needs clang-19, lld-19 and llvm-19 of
# Debian. The UUIDs come from the content, so the bytes are the same every time.
set -e
here=$(cd "$(dirname "$0")"; pwd)
mkdir -p "${1:-$here}"; cd "${1:-$here}"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
dwarf=Contents/Resources/DWARF
for arch in arm64 x86_64; do
  mkdir -p $arch "$work/$arch"
  flags="-target $arch-apple-macos11 -g -O2 -ffreestanding -fdebug-prefix-map=$here/src=/src -fdebug-compilation-dir=/src"
  clang-19 $flags -fno-exceptions -fno-rtti -c "$here/src/one.cpp" -o "$work/$arch/one.o"
  clang-19 $flags -c "$here/src/two.c" -o "$work/$arch/two.o"
  (cd "$work/$arch"; ld64.lld-19 -arch $arch -platform_version macos 11.0 11.0 -oso_prefix "$work/" -o app one.o two.o "$here/src/libSystem.tbd"
   dsymutil-19 -oso-prepend-path "$work" app -o app.dSYM)
  for byte in $(seq $((16#$(llvm-nm-19 "$work/$arch/app" | sort | awk '/ [Tt] __ZNK/ {print $1; exit}'))) 3 $((0x100000540))); do printf '0x%x\n' "$byte"; done |
    llvm-symbolizer-19 --output-style=JSON --obj="$work/$arch/app.dSYM/$dwarf/app" > "$work/$arch.json"
  python3 - "$work/$arch.json" > $arch.tsv <<'PY'
import json, sys
for line in open(sys.argv[1]):
    answer = json.loads(line)
    frames = [f for f in answer.get('Symbol', []) if f['FunctionName']]
    print(answer['Address'], *(f"{f['FunctionName']} {f['FileName'] or '?'}:{f['Line']}" for f in frames), sep='\t')
PY
done
# With its debug map; stripped, with its bundle beside it; and both processors in one file.
cp "$work/arm64/app" arm64/app
llvm-strip-19 -o x86_64/app "$work/x86_64/app"
mkdir -p x86_64/app.dSYM/$dwarf universal/app.dSYM/$dwarf
cp "$work/x86_64/app.dSYM/$dwarf/app" x86_64/app.dSYM/$dwarf/app
llvm-lipo-19 -create "$work/arm64/app" "$work/x86_64/app" -output universal/app
llvm-lipo-19 -create "$work"/{arm64,x86_64}/app.dSYM/$dwarf/app -output universal/app.dSYM/$dwarf/app
