# make run    finds the speech in a real recording and draws it (vad.png)
# make test   checks everything that can be checked on this machine
# make bench  measures it
# Each target installs what it needs. Nothing else is asked for but Go.

GO         ?= go
FUZZTIME   ?= 30s
BENCHTIME  ?= 1s
# A release of staticcheck that the Go toolchain in use can build.
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@$(if $(findstring go1.25,$(shell $(GO) env GOVERSION)),v0.7.0,v0.8.2)

CGO := $(shell $(GO) env CGO_ENABLED)

.PHONY: run test test-all room lint unit networks fuzz cross consumer bench vulkan toolchain clean

run: toolchain
	$(GO) run ./examples/vad --plot vad.png

test: toolchain room lint cross unit networks dawn-test cuda-test fuzz consumer

# The long half: every size of every op, hours of submissions.
test-all: toolchain vulkan
	TANDEM_FULL=1 $(GO) test $(if $(filter 1,$(CGO)),-race) -shuffle=on -timeout 180m ./...
	TANDEM_FULL=1 $(GO) test -shuffle=on -run '$(WHOLE)' -timeout 60m ./model/...
	TANDEM_FULL=1 sh .ci/dawn-test

# Whole networks, which the race detector would make slow for nothing.
WHOLE := Golden|Trained

unit: toolchain vulkan
	@set -a; . ./build/vulkan.env; TANDEM_EMULATED=0 TANDEM_REQUIRE_IMAGES=1 $(GO) test $(if $(filter 1,$(CGO)),-race) -shuffle=on -skip '$(WHOLE)' -timeout 60m ./...

networks: toolchain vulkan
	@set -a; . ./build/vulkan.env; $(GO) test -shuffle=on -run '$(WHOLE)' -timeout 60m ./model/...

# Whether the disk has room for all of this.
room:
	@GO="$(GO)" sh .ci/room

lint:
	@test -z "$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go'))" || \
		{ echo "gofmt would change:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) mod verify

fuzz:
	@FUZZTIME=$(FUZZTIME) GO="$(GO)" sh .ci/fuzz

cross:
	@GO="$(GO)" sh .ci/cross

consumer:
	@GO="$(GO)" sh .ci/consumer

bench: toolchain
	$(GO) run ./examples/bench --device cpu --time $(BENCHTIME)

# Software Vulkan, so that the WebGPU backend is tested without a GPU.
vulkan:
	@mkdir -p build; sh .ci/vulkan build/vulkan.env

toolchain:
	@command -v $(GO) >/dev/null || { echo "tandem needs Go 1.25 or newer: https://go.dev/dl"; exit 1; }
ifneq ($(CGO),1)
	@echo "No C compiler, or CGO_ENABLED=0: the native WebGPU library is left out of this build and" \
		"the race detector is off. Everything else works: the CPU backend, all readers, networks" \
		"and examples, and GPUs through a Dawn library (make dawn). To have it, install a C" \
		"compiler (Debian: apt-get install gcc libc6-dev)."
endif

clean:
	rm -rf build vad.png
	$(GO) clean ./...

.PHONY: dawn dawn-test

# A Dawn library for package gpu, in the user's cache folder.
dawn:
	@sh .ci/dawn

# The gpu backend through Dawn on software Vulkan with matrix units.
dawn-test: toolchain
	@GO="$(GO)" sh .ci/dawn-test

.PHONY: coverage

# Which op runs where, from runs of the conformance suite: pass/passtest/COVERAGE.md.
coverage: toolchain
	@mkdir -p build; GO="$(GO)" sh .ci/coverage

.PHONY: nvcc kernels kernels-check cuda-emulated cuda-test

# The cuda backend with its kernels on this machine's processor; with the race detector what
# goroutines share.
cuda-test: toolchain
	@mkdir -p build; GO="$(GO)" sh .ci/emulated build/cuda.env
	@set -a; . ./build/cuda.env; $(GO) test -shuffle=on -timeout 90m ./cuda
ifeq ($(CGO),1)
	@set -a; . ./build/cuda.env; $(GO) test -race -shuffle=on -timeout 90m ./cuda \
		-run 'TestConformance$$/^(sessions|queue|reuse|order|cancel|caches|lifetime|close|leaks)'
endif

# The images of the CUDA kernels, which are part of the repository: compiled anew where
# sources or the compiler have changed. Nobody needs this but who changes a kernel.
kernels: toolchain nvcc
	$(GO) run ./cuda/kernels/internal/generate -images cuda/kernels/images -nvcc build/nvcc/bin/nvcc

# Compiles all of them again and compares.
kernels-check: toolchain nvcc
	rm -rf build/images
	$(GO) run ./cuda/kernels/internal/generate -images build/images -nvcc build/nvcc/bin/nvcc -check cuda/kernels/images

nvcc:
	@sh .ci/nvcc

# CUDA kernels for the processor of this machine, so that the cuda backend is tested
# without a GPU. Other compute capabilities: make cuda-emulated CAPABILITY=75.
CAPABILITY ?= 90
cuda-emulated: toolchain
	@mkdir -p build
	@$(GO) run ./cuda/kernels/internal/generate -arch $(CAPABILITY) \
		-emulated build/libtandem_cuda$(if $(filter-out 90,$(CAPABILITY)),_$(CAPABILITY)).so
