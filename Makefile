# The everyday commands. Everything real is in CMakeLists.txt, CMakePresets.json and tools/.
JOBS ?= $(shell nproc)

.PHONY: help demo test bench gpu-bundle amd-check format clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## build the program and talk with the model that comes with it
	@tools/demo.sh $(JOBS)

test: ## every check there is: release, asan, tsan, layout, clang-tidy, includes, headers, package
	@tools/deps.sh build serve kernels test bench checks hip browser
	@tools/test.sh $(JOBS)

bench: ## build and run the benchmarks
	@tools/deps.sh build serve kernels test bench
	@cmake --preset release -DTL_BUILD_BENCH=ON
	@cmake --build --preset release -j $(JOBS)
	@for bench in build/release/bin/*_bench; do $$bench || exit 1; done

gpu-bundle: ## pack tests and benchmarks for a machine with a GPU (FOR=sm_90) into build/gpu-bundle
	@tools/deps.sh build serve kernels test bench
	@tools/gpu_bundle.sh $(JOBS) "$(FOR)"

amd-check: ## run the AMD machine code in an emulator (needs TINYGRAD and AMD_EMULATE_DIR)
	@tools/amd_check.sh $(JOBS)

format: ## lay out every source as clang-format decides
	@tools/deps.sh checks
	@tools/format.sh

clean: ## remove everything that was built
	rm -rf build
