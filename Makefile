# The front door; what each target does is in scripts/ and in CMakePresets.json.
.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-gpu bench fuzz format lint clean

# The tests are configured too once what they need is there: `make build` must not undo what `make test` set up.
configure = @cmake --preset $(if $(wildcard .deps/setup-test),release,demo) --log-level=NOTICE >/dev/null

help:  ## this list
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup:  ## install what the build needs: torch and the Perfetto SDK into this folder, packages by apt
	@scripts/setup

build: setup  ## build the library, the Python package (into .venv), the command (build/bin/layertrace) and the simulated GPU
	$(configure)
	@cmake --build build --target layertrace layertrace_command simgpu $(if $(LAYERTRACE_PYTHON),,layertrace_python)
	@scripts/link-package

demo: setup  ## train a small residual CNN on the GPU (a simulated one where there is none), print its layer tree, write demo.pftrace
	$(configure)
	@cmake --build build --target train_residual_cnn layertrace_command simgpu
	@scripts/demo

test:  ## all tests, also under sanitizers, and the linters (installs what they need)
	@scripts/test

test-gpu:  ## what can be tested on a real GPU only, where there is one
	@scripts/test-gpu

bench:  ## build and run the benchmarks
	@scripts/setup test
	@cmake --preset release >/dev/null
	@cmake --build build --target bench

fuzz:  ## fuzz what reads others' files, ten minutes in all (with clang-16, which it installs)
	@scripts/setup fuzz
	@scripts/fuzz

format:  ## format all sources in place
	@scripts/setup test
	@scripts/lint --fix

lint:  ## check format, clang-tidy and ruff
	@scripts/setup test
	@scripts/lint

clean:  ## delete what was built; what setup installed stays (.venv, .deps)
	@rm -rf build build-dev build-asan build-tsan build-lint build-pip build-fuzz
