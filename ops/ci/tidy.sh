#!/usr/bin/env bash
# clang-tidy over the sources that differ from main, or with --all over all of them. It reads the compile commands of
# build/release, so configure and build that preset first. Files that were found clean before, with the same
# headers, are not checked again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=build/release
[[ -f $build/compile_commands.json ]] || {
  echo "tidy.sh: $build/compile_commands.json is missing: run 'make build' first" >&2
  exit 2
}
if [[ ${1:-} == --all ]]; then
  mapfile -t files < <(git ls-files '*.cpp')
else
  mapfile -t files < <({ git diff --name-only --diff-filter=d "$(git merge-base HEAD main)"; git ls-files -o --exclude-standard; } |
    grep '\.cpp$' | sort -u)
fi
clean=build/tidy
mkdir -p "$clean"

# check FILE: one clang-tidy run, keyed by what the file includes of ours.
check() {
  local file=$1 key
  grep -qF "\"$PWD/$file\"" "$build/compile_commands.json" || return 0 # not built by this preset
  key=$({
    cat .clang-tidy "$file"
    g++ -std=c++20 -MM -I. -I"$build" -I"$build/messages" "$file" 2>/dev/null | tr ' \\' '\n\n' | grep -v ':$' | sort -u |
      while read -r header; do [[ $header == /* || ! -f $header ]] || cat "$header"; done
  } | sha256sum | cut -c1-16)
  [[ -e $clean/$key ]] && return 0
  if clang-tidy --quiet -p "$build" --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument \
    --extra-arg=-Wno-ignored-optimization-argument "$file" 2>"$clean/$key.err" >"$clean/$key.out"; then
    rm -f "$clean/$key.err" "$clean/$key.out"
    touch "$clean/$key"
  else
    cat "$clean/$key.out"
    grep -v 'warnings generated\|^Suppressed\|^Use -' "$clean/$key.err" || true
    rm -f "$clean/$key.err" "$clean/$key.out"
    return 1
  fi
}
export -f check
export build clean
printf '%s\0' "${files[@]}" | xargs -0 -r -n 1 -P "$(nproc)" bash -c 'check "$0"'
