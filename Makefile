# The doors of the project. `make run` and `make test` are all that a newcomer needs: they install what is missing,
# build, and run.
#
#   make run     schedule a production cluster's pods on the embedded service
#   make test    build everything and run all tests
#   make bench   the benchmarks, one JSON line per measurement (BENCH="decide --nodes 5000" for one of them)
#   make build   build the release preset (PRESET=asan for another)
#   make deps    install the Debian packages that are missing
#   make fmt     format the sources; make tidy: clang-tidy over what differs from main
#   make clean   remove the builds
PRESET ?= release
JOBS ?= $(shell nproc)
RUN ?= up
BENCH ?=

.PHONY: run test bench build deps deps-full configure fmt tidy clean

run: deps configure
	@cmake --build --preset $(PRESET) --parallel $(JOBS) --target troupe
	@build/$(PRESET)/bin/troupe $(RUN)

test: build
	@ctest --preset $(PRESET)

bench: deps configure
	@cmake --build --preset $(PRESET) --parallel $(JOBS) --target troupe-bench
	@build/$(PRESET)/bin/troupe-bench $(BENCH)

build: deps configure
	@cmake --build --preset $(PRESET) --parallel $(JOBS)

configure: deps
	@[ -f build/$(PRESET)/build.ninja ] || cmake --preset $(PRESET)

deps:
	@ops/setup/install-deps.sh

deps-full:
	@ops/setup/install-deps.sh --full

fmt: deps-full
	@ops/ci/format.sh --fix

tidy: deps-full build
	@ops/ci/tidy.sh

clean:
	@rm -rf build
