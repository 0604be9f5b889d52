# Sourced by .ci/run and .ci/full: named steps with their times, of which a failed one does not stop the others.
export CI=true
jobs=${JOBS:-$(nproc)}
results=()
closing=()
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# step NAME COMMAND...: runs the command, remembers how it went and how long it took.
step() {
  local name=$1 start=$SECONDS code word=passed
  shift
  printf '\n=== %s\n' "$name"
  "$@" 2>&1 | tee "$log"
  code=${PIPESTATUS[0]}
  if ((code == 77)); then
    word="SKIPPED: $(tail -n 1 "$log")"
  elif ((code != 0)); then
    word="FAILED (exit $code)"
    failed=1
  fi
  results+=("$(printf '%5d s  %-28s %s' $((SECONDS - start)) "$name" "$word")")
  return "$code"
}

# build_and_test PRESET: its tests run only when it builds.
build_and_test() {
  local preset=$1
  step "configure $preset" cmake --preset "$preset" || return
  step "build $preset" cmake --build --preset "$preset" --parallel "$jobs" || return
  step "test $preset" ctest --preset "$preset"
  closing+=("--- ctest $preset" "$(sed -n '/tests passed, /,$p' "$log")")
}

# summary: the closing lines of every ctest run, then one line per step; exits with 0 when all passed.
summary() {
  printf '\n=== summary\n'
  ((${#closing[@]} == 0)) || printf '%s\n' "${closing[@]}"
  printf '%s\n' "${results[@]}"
  printf '%5d s  %s\n' "$SECONDS" "$( ((failed)) && echo FAILED || echo passed)"
  exit "$failed"
}
