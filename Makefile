# SPDX-License-Identifier: GPL-2.0
# Sluice. `make` builds build/sluice; V=1 shows the commands. Tests: make check (needs root for most).

VERSION := 0.9.0
BUILD   := build
PREFIX  ?= /usr/local
DESTDIR ?=

CC        ?= cc
CLANG     ?= clang
BPFTOOL   ?= $(firstword $(shell command -v bpftool /usr/sbin/bpftool) bpftool)
PKGCONFIG ?= pkg-config
FUZZ_SECONDS ?= 10

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n'
endif

LIBS     := libbpf jansson libmnl libsystemd yaml-0.1
# For mode libxdp, which loads the library only if it is used.
LIBXDP   := $(shell $(PKGCONFIG) --exists libxdp && echo libxdp)
TOP_LIBS := ncursesw # only sluice-top links it
# Only sluice-share links these. hiredis of Debian 12 has no TLS.
STORE_TLS  := $(shell $(PKGCONFIG) --exists hiredis_ssl openssl && echo hiredis_ssl openssl)
SHARE_LIBS := hiredis $(STORE_TLS)
# Only sluice-serve links these; gnutls verifies the certificates of clients.
SERVE_LIBS := libmicrohttpd gnutls
# Only sluice-replay links libpcap.
REPLAY_LIBS := libpcap
WARNINGS := -Wall -Wextra -Werror
CPPFLAGS += -D_GNU_SOURCE -DSL_VERSION='"$(VERSION)"' -Iinclude -Iuser -Ibpf $(shell $(PKGCONFIG) --cflags $(LIBS) $(SHARE_LIBS) $(SERVE_LIBS)) \
	$(if $(STORE_TLS),-DSL_STORE_TLS) $(if $(LIBXDP),-DSL_LIBXDP)
CFLAGS   ?= -O2 -g
# entries and sets of the table of states are read as other types than they are declared: ways.h
CFLAGS   += -std=c11 -fno-strict-aliasing $(WARNINGS)
LDLIBS   += $(shell $(PKGCONFIG) --libs $(LIBS))
TOP_LDLIBS := $(shell $(PKGCONFIG) --libs $(TOP_LIBS))
SHARE_LDLIBS := $(shell $(PKGCONFIG) --libs $(SHARE_LIBS)) -lpthread
SERVE_LDLIBS := $(shell $(PKGCONFIG) --libs $(SERVE_LIBS)) -lpthread
REPLAY_LDLIBS := $(shell $(PKGCONFIG) --libs $(REPLAY_LIBS)) -lpthread
DEPS     := -MMD -MP

# The directory of the BPF objects. All architectures share them, so `make arm64` uses these.
BPF       := $(BUILD)
BPF_FLAGS := -g -O2 -target bpf -mcpu=v3 $(WARNINGS) -Ivmlinux -Iinclude
SANITIZE  := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

# The rooms of user/, from bottom to top: each uses only those before it (scripts/include-order).
ROOMS   := base capture rules config gate attach state migrate program keep sharing replaying doctor live events suggest report
LIB_SRC := $(wildcard $(ROOMS:%=user/%/*.c))
LIB     := $(BUILD)/libsluice.a
CLI_OBJ := $(patsubst user/%.c,$(BUILD)/user/%.o,$(wildcard user/cli/*.c))
TOP_OBJ := $(patsubst user/%.c,$(BUILD)/user/%.o,$(wildcard user/top/*.c))
SHARE_OBJ := $(patsubst user/%.c,$(BUILD)/user/%.o,$(wildcard user/share/*.c))
SERVE_OBJ := $(patsubst user/%.c,$(BUILD)/user/%.o,$(wildcard user/serve/*.c))
# sluice-replay has the programs with the injected clock, so it has gate/maps.c of its own.
REPLAY_SRC := $(wildcard user/replay/*.c)
REPLAY_OBJ := $(patsubst user/%.c,$(BUILD)/replay/%.o,$(REPLAY_SRC) user/gate/maps.c)

# Tests link the same library, with the sanitizers and the test build of the BPF programs. If SANITIZE is empty, unit
# tests link the objects of the programs.
TESTED := $(if $(SANITIZE),$(BUILD)/test,$(BUILD))
TEST_LIB := $(TESTED)/libsluice.a
TEST_SHARE := $(TESTED)/libshare.a
TEST_TOP := $(TESTED)/libtop.a
TEST_SERVE := $(TESTED)/libserve.a
UNIT     := $(patsubst tests/unit/%.c,$(BUILD)/test/unit/%,$(wildcard tests/unit/*/test_*.c))
DATAPATH := $(patsubst tests/datapath/%.c,$(BUILD)/test/datapath/%,$(wildcard tests/datapath/test_*.c))
FUZZ     := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
DATAPATH_OBJ := $(patsubst tests/datapath/%.c,$(BUILD)/test/datapath/%.o,\
	$(filter-out tests/datapath/test_% %.bpf.c,$(wildcard tests/datapath/*.c))) \
	$(if $(SANITIZE),,$(BUILD)/test/user/gate/maps.o)

all: $(BUILD)/sluice $(BUILD)/sluice-share $(BUILD)/sluice-top $(BUILD)/sluice-serve $(BUILD)/sluice-replay

# --- BPF ---------------------------------------------------------------------------------------

$(BPF)/sluice.bpf.o: bpf/sluice.bpf.c Makefile
	$(say) BPF $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_FLAGS) $(DEPS) -c $< -o $@

# The packet path as the compiler of Debian 13 builds it, for the verifier tests on any Debian.
$(BUILD)/clang-19/sluice.bpf.o: bpf/sluice.bpf.c
	$(say) BPF $@
	$(Q)mkdir -p $(@D)
	$(Q)clang-19 $(BPF_FLAGS) $(DEPS) -c $< -o $@

$(BPF)/test/sluice.bpf.o: bpf/sluice.bpf.c Makefile
	$(say) BPF $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_FLAGS) -DSL_TEST_CLOCK $(DEPS) -c $< -o $@

%/sluice.skel.h: %/sluice.bpf.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name sluice > $@

# --- The command ---------------------------------------------------------------------------------

$(LIB): $(LIB_SRC:user/%.c=$(BUILD)/user/%.o)
	$(say) AR $@
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(BUILD)/sluice: $(CLI_OBJ) $(LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(BUILD)/sluice-share: $(SHARE_OBJ) $(LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) $(SHARE_LDLIBS) -o $@

$(BUILD)/sluice-top: $(TOP_OBJ) $(LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) $(TOP_LDLIBS) -o $@

$(BUILD)/sluice-serve: $(SERVE_OBJ) $(LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) $(SERVE_LDLIBS) -o $@

# The files of the page are part of this object.
$(BUILD)/user/serve/assets.o $(BUILD)/test/user/serve/assets.o: \
	$(addprefix user/serve/,page.html page.js page.css openapi.json)

$(BUILD)/sluice-replay: $(REPLAY_OBJ) $(LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) $(REPLAY_LDLIBS) -o $@

$(BUILD)/replay/%.o: user/%.c Makefile | $(BPF)/test/sluice.skel.h
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -I$(BPF)/test $(CFLAGS) $(DEPS) -c $< -o $@

$(BUILD)/user/%.o: user/%.c Makefile | $(BPF)/sluice.skel.h
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -I$(BPF) $(CFLAGS) $(DEPS) -c $< -o $@

# --- Tests ---------------------------------------------------------------------------------------

TEST_CPPFLAGS = $(CPPFLAGS) -I$(BPF)/test -Ibpf -Itests/lib
TEST_LDLIBS   = $(LDLIBS) -lcmocka -lpthread
# With the sanitizers, gcc -O2 -g takes twice as long as -O1 -g1. `make all` prints the warnings that need -O2.
TEST_LEVEL    = $(if $(SANITIZE),-O1 -g1)
TEST_CFLAGS   = $(CFLAGS) $(TEST_LEVEL) $(SANITIZE)

# This test keeps -O2, because it runs for longer than gcc compiles it.
$(BUILD)/test/unit/include/test_kinds.o: TEST_LEVEL := -g1

$(BUILD)/test/user/%.o: user/%.c Makefile | $(BPF)/test/sluice.skel.h
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CPPFLAGS) $(TEST_CFLAGS) $(DEPS) -c $< -o $@

$(BUILD)/test/%.o: tests/%.c | $(BPF)/test/sluice.skel.h
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CPPFLAGS) $(TEST_CFLAGS) $(DEPS) -c $< -o $@

ifneq ($(TEST_LIB),$(LIB))
$(TEST_LIB): $(LIB_SRC:user/%.c=$(BUILD)/test/user/%.o)
	$(say) AR $@
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^
endif

$(TEST_SHARE): $(patsubst $(BUILD)/%,$(TESTED)/%,$(filter-out %/main.o,$(SHARE_OBJ)))
	$(say) AR $@
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(TEST_TOP): $(patsubst $(BUILD)/%,$(TESTED)/%,$(filter-out %/main.o,$(TOP_OBJ)))
	$(say) AR $@
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(TEST_SERVE): $(patsubst $(BUILD)/%,$(TESTED)/%,$(filter-out %/main.o,$(SERVE_OBJ)))
	$(say) AR $@
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

# The command with the sanitizers, for tests with damaged gates.
$(BUILD)/test/sluice: $(CLI_OBJ:$(BUILD)/%=$(BUILD)/test/%) $(TEST_LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) $^ $(LDLIBS) -o $@

$(BUILD)/test/sluice-share: $(BUILD)/test/user/share/main.o $(TEST_SHARE) $(TEST_LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) $^ $(LDLIBS) $(SHARE_LDLIBS) -o $@

$(BUILD)/test/sluice-top: $(BUILD)/test/user/top/main.o $(TEST_TOP) $(TEST_LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) $^ $(LDLIBS) $(TOP_LDLIBS) -o $@

$(BUILD)/test/sluice-serve: $(BUILD)/test/user/serve/main.o $(TEST_SERVE) $(TEST_LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) $^ $(LDLIBS) $(SERVE_LDLIBS) -o $@

$(BUILD)/test/sluice-replay: $(REPLAY_SRC:user/%.c=$(BUILD)/test/user/%.o) $(TEST_LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) $^ $(LDLIBS) $(REPLAY_LDLIBS) -o $@

# The programs with the sanitizers.
sanitized: $(BUILD)/test/sluice $(BUILD)/test/sluice-share $(BUILD)/test/sluice-top $(BUILD)/test/sluice-serve \
	$(BUILD)/test/sluice-replay

SHARE_UNIT := $(filter $(BUILD)/test/unit/share/%,$(UNIT))
TOP_UNIT := $(filter $(BUILD)/test/unit/top/%,$(UNIT))

# The objects of sluice-replay without its main function.
REPLAY_TESTED := $(if $(SANITIZE),$(patsubst user/%.c,$(BUILD)/test/user/%.o,$(filter-out %/main.c,$(REPLAY_SRC))),\
	$(filter-out %/main.o,$(REPLAY_OBJ)))
REPLAY_UNIT := $(filter $(BUILD)/test/unit/replay/%,$(UNIT))

$(REPLAY_UNIT): $(BUILD)/test/unit/replay/%: $(BUILD)/test/unit/replay/%.o $(REPLAY_TESTED) $(TEST_LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) $^ $(TEST_LDLIBS) $(REPLAY_LDLIBS) -o $@

$(SHARE_UNIT): $(BUILD)/test/unit/share/%: $(BUILD)/test/unit/share/%.o $(TEST_SHARE) $(TEST_LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) $^ $(TEST_LDLIBS) $(SHARE_LDLIBS) -o $@

SERVE_UNIT := $(filter $(BUILD)/test/unit/serve/%,$(UNIT))

$(SERVE_UNIT): $(BUILD)/test/unit/serve/%: $(BUILD)/test/unit/serve/%.o $(TEST_SERVE) $(TEST_LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) $^ $(TEST_LDLIBS) $(SERVE_LDLIBS) -o $@

$(TOP_UNIT): $(BUILD)/test/unit/top/%: $(BUILD)/test/unit/top/%.o $(TEST_TOP) $(TEST_LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) $^ $(TEST_LDLIBS) $(TOP_LDLIBS) -o $@

$(filter-out $(SHARE_UNIT) $(TOP_UNIT) $(SERVE_UNIT) $(REPLAY_UNIT),$(UNIT)): $(BUILD)/test/unit/%: $(BUILD)/test/unit/%.o $(TEST_LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) $^ $(TEST_LDLIBS) -o $@

# The rig of these tests waits for packets only if a test sends some.
$(DATAPATH): $(BUILD)/test/datapath/%: $(BUILD)/test/datapath/%.o $(DATAPATH_OBJ) $(TEST_LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) -Wl,--wrap=synchronize_programs $^ $(TEST_LDLIBS) -o $@

# BPF programs of the datapath tests: give each packet another address, split packets within their
# headers, and set departure times.
BEFORE := senders split stamp
$(BEFORE:%=$(BPF)/test/%.bpf.o): $(BPF)/test/%.bpf.o: tests/datapath/%.bpf.c
	$(say) BPF $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_FLAGS) $(DEPS) -c $< -o $@

$(BEFORE:%=$(BPF)/test/%.skel.h): $(BPF)/test/%.skel.h: $(BPF)/test/%.bpf.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

$(BUILD)/test/datapath/senders.o: | $(BPF)/test/senders.skel.h
$(BUILD)/test/datapath/test_match.o: | $(BPF)/test/split.skel.h
$(BUILD)/test/datapath/test_shape.o: | $(BPF)/test/stamp.skel.h

$(addprefix $(BUILD)/test/unit/,include/test_sketch bpf/test_table bpf/test_forget): \
	TEST_LDLIBS += -lm

$(BUILD)/test/unit/capture/test_capture: TEST_LDLIBS += $(REPLAY_LDLIBS)

comma := ,

# Fuzzers of words and files, without a kernel; quiet.c replaces the printing of messages.
FUZZ_LIB := $(BUILD)/fuzz/libreaders.a
FUZZ_SRC := $(filter-out user/base/error.c,$(wildcard user/base/*.c user/capture/*.c user/rules/*.c user/config/*.c)) \
	user/keep/state_file.c user/report/report_words.c user/serve/route.c \
	$(addprefix user/share/,slots.c connection.c cluster.c redis.c)
FUZZ_OBJ := $(FUZZ_SRC:user/%.c=$(BUILD)/fuzz/user/%.o) $(BUILD)/fuzz/quiet.o
FUZZ_FLAGS = $(CPPFLAGS) -Ibpf -Itests/lib -O1 -g -std=c11 $(WARNINGS) -fno-sanitize-recover=all

$(FUZZ_OBJ): FUZZ_FLAGS += -fsanitize=fuzzer-no-link,address,undefined

$(BUILD)/fuzz/user/%.o: user/%.c
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_FLAGS) $(DEPS) -c $< -o $@

$(BUILD)/fuzz/quiet.o: tests/fuzz/quiet.c
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_FLAGS) $(DEPS) -c $< -o $@

$(FUZZ_LIB): $(FUZZ_OBJ)
	$(say) AR $@
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(BUILD)/fuzz/%: tests/fuzz/%.c $(FUZZ_LIB)
	$(say) FUZZ $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer,address,undefined -MMD -MP -MF $@.d $< $(FUZZ_LIB) \
		$(FUZZ_LDFLAGS) $(LDLIBS) -o $@

# The fuzzer provides connections and clock.
$(BUILD)/fuzz/fuzz_store: FUZZ_LDFLAGS := $(patsubst %,-Wl$(comma)--wrap=%,redisConnectNonBlock \
	redisBufferWrite poll clock_gettime) $(SHARE_LDLIBS)

$(BUILD)/fuzz/fuzz_capture: FUZZ_LDFLAGS := $(REPLAY_LDLIBS)

# The traffic generator of the demo and the tests.
$(BUILD)/traffic: tests/tools/traffic.c
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -MF $@.d $< -o $@ -lpthread

traffic: $(BUILD)/traffic

# The simulator of shared limits: the tables of docs/cluster.md, in a minute of CPU. No root.
$(BUILD)/sim/share: tests/sim/share.c $(addprefix $(BUILD)/user/share/,flow.o debt.o choice.o)
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests/lib $(CFLAGS) -O2 -MMD -MP -MF $@.d $(filter %.c %.o,$^) -lm -o $@

share-sim: $(BUILD)/sim/share
	$(Q)$<

.PHONY: share-sim

# Preloaded into a command, makes its calls fail as if the machine had no memory.
$(BUILD)/starve.so: tests/tools/starve.c
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -shared -MMD -MP -MF $@.d $< -o $@

# The client of the store alone, controlled by lines of input; with the sanitizers.
$(BUILD)/test/store_client: $(BUILD)/test/tools/store_client.o $(TEST_SHARE) $(TEST_LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) $^ $(LDLIBS) $(SHARE_LDLIBS) -o $@

# Prints each report several times in one process; with the sanitizers.
$(BUILD)/test/reports: $(BUILD)/test/tools/reports.o $(TEST_LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZE) $^ $(LDLIBS) -o $@

# The generator of spoofed floods, which shares frames and program with the benchmarks' generator.
FORGE_FLAGS := -Itests/bench -Itests/lib

$(BUILD)/tools/forge.bpf.o: tests/tools/forge.bpf.c
	$(say) BPF $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_FLAGS) $(FORGE_FLAGS) $(DEPS) -c $< -o $@

$(BUILD)/tools/forge.skel.h: $(BUILD)/tools/forge.bpf.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name forge > $@

$(BUILD)/tools/forge.o: tests/tools/forge.c | $(BUILD)/tools/forge.skel.h
	$(say) CC $@
	$(Q)$(CC) $(FORGE_FLAGS) -I$(BUILD)/tools $(CPPFLAGS) $(CFLAGS) $(DEPS) -c $< -o $@

$(BUILD)/forge: $(BUILD)/tools/forge.o $(BUILD)/bench/frames.o $(LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

# scripts/check compiles these files while it installs packages for tests: they need no more packages than `make all`.
early: all sanitized $(FUZZ_LIB) $(BUILD)/traffic $(BUILD)/forge $(BUILD)/sim/share $(BUILD)/starve.so \
	$(BUILD)/test/store_client $(BUILD)/test/reports

units: $(UNIT)

tests: early units $(DATAPATH) $(FUZZ)

check: tests
	$(Q)scripts/run-tests

# At most 3 minutes on 2 CPUs, after a build.
check-quick: tests
	$(Q)scripts/run-tests --quick

fuzz: $(FUZZ)
	$(Q)for f in $(FUZZ); do scripts/run-fuzzer $$f $(FUZZ_SECONDS) || exit 1; done

demo: all $(BUILD)/traffic
	$(Q)scripts/demo --no-install

demo-cluster: all $(BUILD)/traffic
	$(Q)scripts/demo-cluster --no-install

# --- Benchmarks: not part of `make check`, as speed depends on the machine ------------------------

BENCH_OBJ := $(patsubst tests/bench/%.c,$(BUILD)/bench/%.o,$(filter-out %.bpf.c %/kinds.c,$(wildcard tests/bench/*.c)))
BENCH_BPF := $(patsubst tests/bench/%.c,$(BUILD)/bench/%.o,$(wildcard tests/bench/*.bpf.c))

$(BUILD)/bench/%.bpf.o: tests/bench/%.bpf.c
	$(say) BPF $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_FLAGS) -Ibpf -Itests/lib $(DEPS) -c $< -o $@

$(BUILD)/bench/%.o: tests/bench/%.c
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests/lib $(CFLAGS) $(DEPS) -c $< -o $@

$(BUILD)/bench/bench: $(BENCH_OBJ) $(LIB) | $(BENCH_BPF)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -lpthread -o $@

bench: all $(BUILD)/bench/bench
	$(Q)scripts/bench $(CASES)

bench-quick: all $(BUILD)/bench/bench
	$(Q)scripts/bench --quick $(CASES)

# The excess of one source that floods from two CPUs, here and in other limiters.
beside-others: all $(BUILD)/bench/textbook.bpf.o
	$(Q)scripts/beside-others

tests: $(BUILD)/bench/textbook.bpf.o

# What `sluice top` costs on a gate with a million states, for a minute.
bench-top: all
	$(Q)scripts/top-cost

# The arithmetic of each kind of limit alone: no root, no kernel.
$(BUILD)/bench/kinds: $(BUILD)/bench/kinds.o $(LIB)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

bench-kinds: $(BUILD)/bench/kinds
	$(Q)$<

# --- Other kernels -------------------------------------------------------------------------------

$(BUILD)/verifier_counts: tests/vm/verifier_counts.c
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -MF $@.d $< $(LDFLAGS) $(LDLIBS) -o $@

tests: $(BUILD)/verifier_counts $(if $(shell command -v clang-19),$(BUILD)/clang-19/sluice.bpf.o)

datapath-tests: $(DATAPATH)

# arm64 builds the programs and the unit tests, which scripts/vm-arm64 runs. arm64-guest also builds what check-kernels
# runs under the kernel of arm64.
arm64: ARM64_GOALS := all units
arm64-guest: ARM64_GOALS := all units datapath-tests traffic
arm64-guest: $(BEFORE:%=$(BPF)/test/%.skel.h)
arm64 arm64-guest: $(BPF)/sluice.skel.h $(BPF)/test/sluice.skel.h
	$(Q)root=$$(scripts/vm-root host arm64-libraries) && CFLAGS=-O2 PKG_CONFIG_SYSROOT_DIR="$$root" \
		PKG_CONFIG_LIBDIR="$$root/usr/lib/aarch64-linux-gnu/pkgconfig:$$root/usr/share/pkgconfig" \
		$(MAKE) BUILD=$(BUILD)/arm64 BPF=$(BPF) SANITIZE= AR=aarch64-linux-gnu-ar \
		CC="aarch64-linux-gnu-gcc --sysroot=$$root" $(ARM64_GOALS)

# Build, install, boot and purge the package in these Debians.
DEBIANS := bookworm trixie

check-kernels: tests arm64-guest
	$(Q)scripts/vm-tests 6.1 6.12 backports arm64 6.1-arm64 $(DEBIANS)

check-boot: tests
	$(Q)scripts/vm-tests $(DEBIANS)

# End-to-end tests with all cases; `make check` selects some at random, or uses smaller ones.
check-long: export SLUICE_LONG := 1
check-long: tests
	$(Q)scripts/run-tests

# Before a release: both commands of the README in fresh root file systems of these Debians.
check-debian:
	$(Q)scripts/check-debian $(DEBIANS)

# Random commands for ten minutes, with the shipped programs and with the sanitizers.
SOAK := /usr/bin/python3 -m pytest -p no:cacheprovider -q -s tests/e2e/test_soak.py

check-soak: export SLUICE_SOAK_SECONDS ?= 300
check-soak: tests
	$(Q)$(SOAK)
	$(Q)CFLAGS="-O1 -g $(SANITIZE)" $(MAKE) BUILD=$(BUILD)/sanitized all $(BUILD)/sanitized/traffic
	$(Q)SLUICE_BUILD=$(BUILD)/sanitized $(SOAK)

# Every promise of docs/cluster.md, on a machine that does nothing else.
check-cluster: tests
	$(Q)PYTHONPATH=tests/e2e /usr/bin/python3 -m pytest -p no:cacheprovider -q -s tests/cluster

# The page of sluice-serve in Chromium, which is too large for every test run.
check-page: tests
	$(Q)PYTHONPATH=tests/e2e:tests/page /usr/bin/python3 -m pytest -p no:cacheprovider -q -rs \
		-W ignore::pytest.PytestUnknownMarkWarning tests/page

# Tests with other programs of Debian, such as detectors and podman: scripts/install-deps fit
check-fit: tests
	$(Q)PYTHONPATH=tests/e2e /usr/bin/python3 -m pytest -p no:cacheprovider -q -rs \
		-W ignore::pytest.PytestUnknownMarkWarning tests/fit

.PHONY: arm64 arm64-guest units datapath-tests traffic check-fit check-page check-kernels check-boot check-debian check-long check-soak check-cluster

# --- The rest ------------------------------------------------------------------------------------

UNITS_TO := $(DESTDIR)$(PREFIX)/lib/systemd/system
COMPLETIONS_TO := $(DESTDIR)$(PREFIX)/share/bash-completion/completions

install: install-sluice install-share install-top install-serve install-replay

install-sluice: $(BUILD)/sluice
	$(say) INSTALL $(DESTDIR)$(PREFIX)/sbin/sluice
	$(Q)install -D -m 0755 $(BUILD)/sluice $(DESTDIR)$(PREFIX)/sbin/sluice
	$(say) INSTALL $(DESTDIR)$(PREFIX)/share/sluice/sluice.schema.json
	$(Q)install -D -m 0644 docs/sluice.schema.json $(DESTDIR)$(PREFIX)/share/sluice/sluice.schema.json
	$(say) INSTALL $(DESTDIR)$(PREFIX)/share/man
	$(Q)install -D -m 0644 docs/man/sluice.8 $(DESTDIR)$(PREFIX)/share/man/man8/sluice.8
	$(Q)install -D -m 0644 docs/man/sluice-events.8 $(DESTDIR)$(PREFIX)/share/man/man8/sluice-events.8
	$(Q)install -D -m 0644 docs/man/sluice-rules.5 $(DESTDIR)$(PREFIX)/share/man/man5/sluice-rules.5
	$(Q)install -D -m 0644 docs/man/sluice-inspect.7 $(DESTDIR)$(PREFIX)/share/man/man7/sluice-inspect.7
	$(Q)install -D -m 0644 docs/man/sluice-limits.7 $(DESTDIR)$(PREFIX)/share/man/man7/sluice-limits.7
	$(Q)install -D -m 0644 docs/man/sluice-beside.7 $(DESTDIR)$(PREFIX)/share/man/man7/sluice-beside.7
	$(say) INSTALL $(COMPLETIONS_TO)/sluice
	$(Q)install -D -m 0644 docs/sluice.bash $(COMPLETIONS_TO)/sluice
	$(say) INSTALL $(UNITS_TO)/sluice@.service
	$(Q)install -D -m 0644 scripts/systemd/sysusers.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d/sluice.conf
	$(Q)install -D -m 0644 scripts/systemd/tmpfiles.conf $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/sluice.conf
	$(Q)install -D -m 0644 scripts/systemd/sluice@.service $(UNITS_TO)/sluice@.service
	$(Q)install -D -m 0644 scripts/systemd/sluice-events@.service $(UNITS_TO)/sluice-events@.service
	$(Q)install -D -m 0755 scripts/detectors/feed $(DESTDIR)$(PREFIX)/libexec/sluice/feed
	$(Q)install -D -m 0755 scripts/detectors/crowdsec $(DESTDIR)$(PREFIX)/libexec/sluice/crowdsec
	$(Q)install -D -m 0644 scripts/systemd/sluice-feed@.timer $(UNITS_TO)/sluice-feed@.timer
	$(Q)install -D -m 0644 scripts/systemd/sluice-feed@.service $(UNITS_TO)/sluice-feed@.service
	$(Q)sed -i 's,@PREFIX@,$(PREFIX),' $(addprefix $(UNITS_TO)/,sluice@.service sluice-events@.service sluice-feed@.service)

# Needs what install-sluice installs.
install-share: $(BUILD)/sluice-share
	$(say) INSTALL $(DESTDIR)$(PREFIX)/sbin/sluice-share
	$(Q)install -D -m 0755 $(BUILD)/sluice-share $(DESTDIR)$(PREFIX)/sbin/sluice-share
	$(Q)install -D -m 0644 docs/man/sluice-share.8 $(DESTDIR)$(PREFIX)/share/man/man8/sluice-share.8
	$(Q)install -d $(COMPLETIONS_TO)
	$(Q)ln -sf sluice $(COMPLETIONS_TO)/sluice-share
	$(Q)install -D -m 0644 scripts/systemd/sluice-share@.service $(UNITS_TO)/sluice-share@.service
	$(Q)sed -i 's,@PREFIX@,$(PREFIX),' $(UNITS_TO)/sluice-share@.service

install-top: $(BUILD)/sluice-top
	$(say) INSTALL $(DESTDIR)$(PREFIX)/sbin/sluice-top
	$(Q)install -D -m 0755 $(BUILD)/sluice-top $(DESTDIR)$(PREFIX)/sbin/sluice-top
	$(Q)install -D -m 0644 docs/man/sluice-top.8 $(DESTDIR)$(PREFIX)/share/man/man8/sluice-top.8
	$(Q)install -d $(COMPLETIONS_TO)
	$(Q)ln -sf sluice $(COMPLETIONS_TO)/sluice-top

install-serve: $(BUILD)/sluice-serve
	$(say) INSTALL $(DESTDIR)$(PREFIX)/sbin/sluice-serve
	$(Q)install -D -m 0755 $(BUILD)/sluice-serve $(DESTDIR)$(PREFIX)/sbin/sluice-serve
	$(Q)install -D -m 0644 docs/man/sluice-serve.8 $(DESTDIR)$(PREFIX)/share/man/man8/sluice-serve.8
	$(Q)install -d $(COMPLETIONS_TO)
	$(Q)ln -sf sluice $(COMPLETIONS_TO)/sluice-serve
	$(Q)install -D -m 0644 scripts/systemd/sluice-serve.socket $(UNITS_TO)/sluice-serve.socket
	$(Q)install -D -m 0644 scripts/systemd/sluice-serve.service $(UNITS_TO)/sluice-serve.service
	$(Q)sed -i 's,@PREFIX@,$(PREFIX),' $(UNITS_TO)/sluice-serve.service

install-replay: $(BUILD)/sluice-replay
	$(say) INSTALL $(DESTDIR)$(PREFIX)/sbin/sluice-replay
	$(Q)install -D -m 0755 $(BUILD)/sluice-replay $(DESTDIR)$(PREFIX)/sbin/sluice-replay
	$(Q)install -D -m 0644 docs/man/sluice-replay.8 $(DESTDIR)$(PREFIX)/share/man/man8/sluice-replay.8
	$(Q)install -D -m 0644 docs/man/sluice-suggest.8 $(DESTDIR)$(PREFIX)/share/man/man8/sluice-suggest.8
	$(Q)install -d $(COMPLETIONS_TO)
	$(Q)ln -sf sluice $(COMPLETIONS_TO)/sluice-replay

# The packages of Debian: sluice and its programs, as $(BUILD)/PACKAGE_VERSION_ARCH.deb.
deb:
	$(Q)MAKE="$(MAKE)" scripts/deb $(VERSION) $(BUILD)

# The container image, as $(BUILD)/sluice_VERSION_ARCH.oci.tar. Needs root, or user namespaces.
image: deb
	$(Q)scripts/image $(VERSION) $(BUILD)

tests: $(if $(shell command -v dpkg-shlibdeps),deb)

# Every message of the programs, to be read.
messages:
	$(Q)scripts/messages

format:
	$(Q)clang-format -i $$(git ls-files -co --exclude-standard '*.c' '*.h' | grep -v ^vmlinux/)

clean:
	$(say) CLEAN $(BUILD)
	$(Q)rm -rf $(BUILD)

.PHONY: all sanitized early tests check check-quick fuzz demo demo-cluster bench bench-quick bench-kinds bench-top beside-others install install-sluice install-share install-top install-serve install-replay deb image messages format clean
.DELETE_ON_ERROR:
.SECONDARY:

-include $(shell find $(BUILD) \( -path $(BUILD)/arm64 -o -path $(BUILD)/deb -o -path $(BUILD)/vm \) -prune -o \
	-name '*.d' -print 2>/dev/null)
