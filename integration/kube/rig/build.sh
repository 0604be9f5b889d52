#!/usr/bin/env bash
# Builds the programs that the kube tests run against (kube-apiserver, kube-scheduler, kube-controller-manager,
# kubectl where PATH has none, and the peer program of this folder), once per version, and prints on standard
# output the directory that holds them. Everything else goes to standard error.
#
# Exit 77: they cannot be had on this machine; the last line says what is missing. Other failures: exit 1.
# TROUPE_CACHE: where they are kept (default ~/.cache/troupe).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${TROUPE_CACHE:-$HOME/.cache/troupe}/kube-rig
toolchain=go1.25.5 # fetched as a module where only an older Go is installed
cd "$here"

say() { printf 'kube rig: %s\n' "$*" >&2; }
missing() { say "$*"; exit 77; }
key() { cat "$@" | sha256sum | cut -c1-12; }

command -v etcd >/dev/null || missing 'etcd is missing: install the Debian package etcd-server (ops/setup/install-deps.sh does)'

kube_dir=$cache/kubernetes-$(key go.mod go.sum tools.go)
bin=$cache/bin-$(key go.mod go.sum tools.go peer/*.go)
programs=(kube-apiserver kube-scheduler kube-controller-manager)
command -v kubectl >/dev/null || programs+=(kubectl)

complete() {
  local program
  for program in "${programs[@]}" peer; do [[ -x $bin/$program ]] || return 1; done
}
if complete; then
  echo "$bin"
  exit 0
fi

# One builder at a time; a second one finds everything done.
mkdir -p "$cache" || missing "cannot write $cache: set TROUPE_CACHE to a writable directory"
exec 9>"$cache/lock"
flock 9
if complete; then
  echo "$bin"
  exit 0
fi

# new_enough GO: whether this go command builds the module here (1.21 and later fetch a newer toolchain themselves).
new_enough() {
  local version minor
  version=$("$1" env GOVERSION 2>/dev/null) || return 1
  [[ $version =~ ^go1\.([0-9]+) ]] || return 1
  minor=${BASH_REMATCH[1]}
  ((minor >= 25))
}

# find_go: prints a go command of version 1.25 or later.
find_go() {
  local go candidates=() any=
  if command -v go >/dev/null; then candidates+=("$(command -v go)"); fi
  candidates+=(/usr/local/go/bin/go /usr/lib/go-*/bin/go "$cache/$toolchain/bin/go")
  for go in "${candidates[@]}"; do
    [[ -x $go ]] || continue
    any=${any:-$go}
    if new_enough "$go"; then
      echo "$go"
      return
    fi
  done
  [[ -n $any ]] || return 1
  # An older Go fetches the toolchain as what it is, a module, checksum and all; only the executable bits are lost.
  say "$("$any" version) is too old, fetching $toolchain"
  local module zip_dir
  module="golang.org/toolchain@v0.0.1-$toolchain.$("$any" env GOOS)-$("$any" env GOARCH)"
  (cd "$cache" && GO111MODULE=on GOFLAGS=-mod=mod "$any" mod download "$module") >&2 || return 1
  zip_dir=$("$any" env GOMODCACHE)/$module
  rm -rf "${cache:?}/$toolchain" && cp -r "$zip_dir" "$cache/$toolchain"
  chmod -R u+w "$cache/$toolchain"
  chmod -R +x "$cache/$toolchain/bin" "$cache/$toolchain/pkg/tool"
  new_enough "$cache/$toolchain/bin/go" || return 1
  echo "$cache/$toolchain/bin/go"
}
go=$(find_go) || missing 'Go 1.25 or newer is missing and could not be fetched: install it, or put it on PATH (ops/setup/install-deps.sh tries)'

# Where the modules cannot be fetched, nothing can be built; that is the machine's lack, not a defect of ours.
"$go" list -deps k8s.io/kubernetes/cmd/kube-apiserver ./peer >/dev/null || missing 'the Kubernetes modules cannot be downloaded: check network access and GOPROXY'

version=$("$go" list -m -f '{{.Version}}' k8s.io/kubernetes)
[[ $version =~ ^v([0-9]+)\.([0-9]+)\. ]] || { say "go.mod: k8s.io/kubernetes has no release version: $version"; exit 1; }
stamp=k8s.io/component-base/version
ldflags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=${BASH_REMATCH[1]} -X $stamp.gitMinor=${BASH_REMATCH[2]}"

mkdir -p "$kube_dir" "$bin"
for program in "${programs[@]}"; do
  if [[ ! -x $kube_dir/$program ]]; then
    say "building $program $version (a few minutes when nothing is cached)"
    CGO_ENABLED=0 "$go" build -ldflags "$ldflags" -o "$kube_dir/$program.part" "k8s.io/kubernetes/cmd/$program" >&2
    mv "$kube_dir/$program.part" "$kube_dir/$program"
  fi
  ln -sfn "$kube_dir/$program" "$bin/$program"
done
say 'building peer'
CGO_ENABLED=0 "$go" build -ldflags '-s -w' -o "$bin/peer.part" ./peer >&2
mv "$bin/peer.part" "$bin/peer"
complete || { say "programs are missing in $bin after the build"; exit 1; }
echo "$bin"
