#!/usr/bin/env bash
# Checks that all C++ sources are formatted as .clang-format says; --fix formats them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mode=(--dry-run --Werror)
if [[ ${1:-} == --fix ]]; then mode=(-i); fi
git ls-files -z '*.hpp' '*.cpp' | xargs -0 -r -n 40 -P "$(nproc)" clang-format "${mode[@]}"
