#!/usr/bin/env bash
# Schema evolution: bytes written by the last landed schemas must stay readable.
#   conform.sh check FLATC        every schema conforms to its landed copy (ctest schema_conform)
#   conform.sh self-test FLATC    a broken copy is refused (ctest schema_conform_self_test)
#   conform.sh update             after landing a change of schemas/: take them as the landed ones
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# check_all DIRECTORY FLATC: the schemas of DIRECTORY against landed/.
check_all() {
  local code=0 landed name
  for landed in landed/*.fbs; do
    name=${landed##*/}
    if [[ ! -f $1/$name ]]; then
      echo "schema_conform: $name has landed and is gone; stored bytes of it could not be read" >&2
      code=1
    elif ! "$2" --conform "$landed" -I landed "$1/$name"; then
      echo "schema_conform: $name does not conform to $landed; add fields at the end of tables only" >&2
      code=1
    fi
  done
  return "$code"
}

case ${1:-} in
  check)
    check_all schemas "$2"
    ;;
  self-test)
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    cp schemas/*.fbs "$copy"
    check_all "$copy" "$2"
    # A field whose type changes: bytes on disk would be read as something else.
    sed -i 's/^  priority: int;/  priority: string;/' "$copy/pod.fbs"
    if cmp -s schemas/pod.fbs "$copy/pod.fbs"; then
      echo 'schema_conform: the self-test found nothing to break in pod.fbs' >&2
      exit 1
    fi
    if check_all "$copy" "$2" 2>/dev/null; then
      echo 'schema_conform: a broken schema was accepted' >&2
      exit 1
    fi
    ;;
  update)
    cp schemas/*.fbs landed/
    ;;
  *)
    sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
