#!/usr/bin/env bash
# Builds the fuzzers and runs each for FUZZ_SECONDS (60) from its corpus, integration/fuzz/corpus/<name>. What they find is
# left in build/fuzz/findings and fails the run; inputs that reach more are left in build/fuzz/corpus/<name>.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${FUZZ_SECONDS:-60}
cmake --preset fuzz || exit 1
cmake --build --preset fuzz --parallel "${JOBS:-$(nproc)}" || exit 1
shopt -s nullglob
fuzzers=(build/fuzz/bin/fuzz_*)
if ((${#fuzzers[@]} == 0)); then
  echo 'fuzz.sh: build/fuzz/bin has no fuzzers' >&2
  exit 1
fi
code=0
mkdir -p build/fuzz/findings
for fuzzer in "${fuzzers[@]}"; do
  name=${fuzzer##*/fuzz_}
  grown=build/fuzz/corpus/$name
  kept=integration/fuzz/corpus/$name
  mkdir -p "$grown"
  corpus=("$grown")
  [[ ! -d $kept ]] || corpus+=("$kept")
  echo "--- $name: $seconds s"
  "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="build/fuzz/findings/$name-" "${corpus[@]}" || code=1
done
exit "$code"
