#!/usr/bin/env bash
# tests/fuzz/run.sh TARGET SECONDS [libFuzzer's options]: fuzzes a target with what is in its corpus; what
# is new stays in target/fuzz/found/TARGET, a finding in target/fuzz/findings.
# tests/fuzz/run.sh TARGET keep: both corpora, as few inputs as cover the same, into the one of the tree.
set -eu
[ $# -ge 2 ] || { sed -n 's/^# //p' "$0"; exit 2; }
target=$1 seconds=$2
shift 2
cd "$(dirname "$0")"
out=${CARGO_TARGET_DIR:-$PWD/../../target}/fuzz host=$(rustc -vV | sed -n 's/^host: //p')
# Coverage feedback on the stable compiler. It is for the host as a named target, so that build scripts and
# macros are built without it.
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Ccodegen-units=1 --cfg fuzzing"
for kind in inline-8bit-counters pc-table trace-compares; do
  flags+=" -Cllvm-args=-sanitizer-coverage-$kind"
done
DOCKET_BUILD_COMMIT="" RUSTFLAGS=$flags \
  cargo build --locked --release --target "$host" --target-dir "$out/build" --bin docket-fuzz
found=$out/found/$target corpus=$PWD/corpus/$target
mkdir -p "$found" "$out/findings" "$corpus"
# Key files are written and synced.
[ -d /dev/shm ] && export TMPDIR=/dev/shm
export DOCKET_FUZZ_TARGET=$target
fuzz=("$out/build/$host/release/docket-fuzz" -max_len=16384 -rss_limit_mb=2048 -timeout=20)
if [ "$seconds" = keep ]; then
  kept=$(mktemp -d)
  # Large inputs make large diffs, and what they cover small ones mostly do as well.
  "${fuzz[@]}" -max_len=4096 -set_cover_merge=1 "$kept" "$corpus" "$found" 2>"$out/$target.merge.log"
  rm -rf "$corpus"
  mkdir -p "$corpus"
  # 200 of all sizes, under names that say nothing but which is which.
  find "$kept" -type f -printf '%s %p\n' | sort -n |
    awk '{ all[NR] = $0 } END { step = NR > 200 ? NR / 200 : 1; for (at = 1; at <= NR; at += step) print all[int(at)] }' |
    while read -r _ file; do
      cp "$file" "$corpus/$(sha1sum "$file" | cut -c 1-12)"
    done
  rm -rf "$kept"
  find "$corpus" -type f | wc -l
  exit
fi
case $target in
  json | number_text) dictionary=() ;;
  keyfile | template) dictionary=("-dict=dictionaries/$target.txt") ;;
  *) dictionary=("-dict=dictionaries/body.txt") ;;
esac
exec "${fuzz[@]}" "${dictionary[@]}" -max_total_time="$seconds" -print_final_stats=1 \
  -artifact_prefix="$out/findings/$target-" "$@" "$found" "$corpus"
