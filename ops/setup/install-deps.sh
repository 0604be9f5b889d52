#!/usr/bin/env bash
# Installs the Debian 12 packages that Troupe is built and tested with. It asks for nothing, uses sudo only where it
# is not root, and is done at once when everything is there.
#
#   install-deps.sh          build, run and test
#   install-deps.sh --full   also clang with its tools, for the fuzzers, clang-format and clang-tidy
#   install-deps.sh --list   print the packages and install nothing
set -euo pipefail

packages=(
  # Tools
  ca-certificates ccache cmake curl flatbuffers-compiler flatbuffers-compiler-dev g++ git lld make ninja-build openssl
  # Libraries of the service
  libboost-dev libcaf-dev libcli11-dev libcpprest-dev libexpected-dev libflatbuffers-dev libfmt-dev libjemalloc-dev libnats-dev
  librocksdb-dev libsimdjson-dev libspdlog-dev libssl-dev libxxhash-dev libyaml-cpp-dev prometheus-cpp-dev zlib1g-dev
  # Tests and benchmarks
  libbenchmark-dev libcurl4-openssl-dev libgmock-dev libgtest-dev librapidcheck-dev nlohmann-json3-dev
  # Servers that tests run against
  etcd-server nats-server
)
full=(clang clang-format clang-tidy libclang-rt-14-dev)

case ${1:-} in
  --full | --list) packages+=("${full[@]}") ;;
  '') ;;
  *)
    echo "usage: install-deps.sh [--full | --list]" >&2
    exit 2
    ;;
esac
# The kube tests build Kubernetes from its modules. Any Go will do: an old one fetches the right one.
if ! command -v go >/dev/null && [[ ! -x /usr/local/go/bin/go ]]; then packages+=(golang-go); fi

if [[ ${1:-} == --list ]]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

installed=$(dpkg-query -W -f '${binary:Package} ${db:Status-Status}\n' 2>/dev/null |
  awk '$2 == "installed" {sub(/:.*/, "", $1); print $1}')
missing=()
for package in "${packages[@]}"; do
  grep -qxF "$package" <<<"$installed" || missing+=("$package")
done
if ((${#missing[@]} == 0)); then exit 0; fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install-deps.sh: these packages are missing, and there is no sudo to install them with; as root, run:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "install-deps.sh: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
# Debian starts the servers that it installs; the tests start their own on ports of their own.
for service in etcd nats-server; do
  if [[ -d /run/systemd/system && " ${missing[*]} " == *" $service"* ]]; then
    "${as_root[@]}" systemctl disable --now "$service" >&2 || true
  fi
done
