# SPDX-License-Identifier: Apache-2.0
# make | make check | make bench | make fuzz | make stress
# make install DESTDIR= PREFIX=        make SAN=address,undefined | SAN=thread
# make CC=clang WERROR=1               everything is built below build/

VERSION := 0.1.0
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib/weft
ifeq ($(origin CC),default)
CC := gcc
endif
PKGS := libzmq libczmq msgpack uuid sqlite3 jansson libprotobuf-c libcurl zlib
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null)
# msgpack-c's pkg-config name differs between releases
ifeq ($(PKG_LIBS),)
PKGS := libzmq libczmq msgpack-c uuid sqlite3 jansson libprotobuf-c libcurl zlib
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS))
PKG_LIBS := $(shell pkg-config --libs $(PKGS))
endif
JAVA_INCLUDE ?= $(firstword $(wildcard /usr/lib/jvm/java-17-openjdk-*/include /usr/lib/jvm/default-java/include /usr/lib/jvm/*/include))

comma := ,
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
        -Wcast-qual -Wvla -Wundef -Wwrite-strings -Wno-unused-parameter
ifdef WERROR
WARN += -Werror
endif
OPT ?= -O2 -g
BASE_CFLAGS := -std=c11 -D_GNU_SOURCE -DWEFT_VERSION='"$(VERSION)"' -fno-omit-frame-pointer \
               -fstack-protector-strong $(WARN) $(OPT) $(CFLAGS)

ifdef SAN
B := build/$(subst $(comma),-,$(SAN))
SAN_CFLAGS := -fsanitize=$(SAN) -fno-sanitize-recover=all
# Inside a foreign VM only a trapping UBSan is possible: the probe links libc alone.
PROBE_SAN := $(if $(findstring undefined,$(SAN)),-fsanitize=undefined -fsanitize-undefined-trap-on-error)
else
B := build$(if $(FAULTS),/faults)
SAN_CFLAGS :=
PROBE_SAN :=
endif
# FAULTS=1: the points of common/fault.h are in; for the fault tests only.
BASE_CFLAGS += $(if $(FAULTS),-DWEFT_FAULTS)

COMMON_SRC := $(wildcard common/*.c)
CTL_SRC := $(filter-out controller/main.c,$(wildcard controller/*.c controller/*/*.c))
CAR_SRC := $(filter-out instance/sidecar/main.c,$(wildcard instance/sidecar/*.c instance/sidecar/way_in/*.c)) instance/shm/reader.c instance/shm/find.c
PROBE_SRC := $(wildcard instance/probe/*.c instance/probe/runtime/*.c) instance/shm/writer.c common/ids.c common/pattern.c common/network.c \
  $(if $(FAULTS),common/fault_step.c)
PAGE := $(wildcard controller/view/html/page.*)
# Made from .proto files by protoc-c.
PROTO := $(wildcard controller/view/*.proto)
ALL_SRC := $(sort $(COMMON_SRC) $(CTL_SRC) $(CAR_SRC) $(PROBE_SRC))
TEST_SRC := $(wildcard tests/unit/*/test_*.c tests/unit/*/*/test_*.c tests/unit/*/*/*/test_*.c)
BENCH_SRC := $(wildcard tests/bench/bench_*.c)

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
pobj = $(patsubst %.c,$(B)/probe-obj/%.o,$(1))
PAGE_OBJ := $(PAGE:%=$(B)/obj/%.o)
GEN := $(patsubst %.proto,$(B)/gen/%.pb-c,$(notdir $(PROTO)))
GEN_OBJ := $(GEN:%=%.o)
TESTS := $(patsubst %.c,$(B)/%,$(TEST_SRC))
BENCHES := $(patsubst %.c,$(B)/%,$(BENCH_SRC))

all: $(B)/weft $(B)/weft-instance $(B)/libweft_probe.so

$(B)/gen/%.pb-c.c $(B)/gen/%.pb-c.h: controller/view/%.proto
	@mkdir -p $(@D)
	protoc-c --proto_path=$(<D) --c_out=$(@D) $(<F)
$(GEN_OBJ): %.o: %.c
	$(CC) $(BASE_CFLAGS) -Wno-cast-qual $(SAN_CFLAGS) $(PKG_CFLAGS) -c $< -o $@

$(B)/obj/%.o: %.c | $(GEN:%=%.h)
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(SAN_CFLAGS) $(PKG_CFLAGS) -I$(B)/gen -I$(JAVA_INCLUDE) -I$(JAVA_INCLUDE)/linux -MMD -MP -c $< -o $@

# -mno-… none: baseline x86-64. Hidden by default; the export map names what is not.
$(B)/probe-obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(PROBE_SAN) -fPIC -fvisibility=hidden -ftls-model=initial-exec -I$(JAVA_INCLUDE) -I$(JAVA_INCLUDE)/linux -MMD -MP -c $< -o $@

# The page of `weft report` as bytes, and the digest that its policy knows them by.
$(B)/obj/controller/view/html/page.%.o: controller/view/html/page.%
	@mkdir -p $(@D)
	cp $< $(@D)/
	printf %s "$$(sha256sum <$< | cut -c1-64 | tr a-f A-F | basenc -d --base16 | base64)" >$(@D)/page.$*.sha256
	cd $(@D) && $(LD) -r -z noexecstack -b binary -o page.$*.o page.$* page.$*.sha256

$(B)/weft: $(call obj,controller/main.c $(CTL_SRC) $(COMMON_SRC)) $(PAGE_OBJ) $(GEN_OBJ)
	$(CC) $(SAN_CFLAGS) $(OPT) -o $@ $^ $(PKG_LIBS) -lm -lpthread $(LDFLAGS)

$(B)/weft-instance: $(call obj,instance/sidecar/main.c $(CAR_SRC) $(COMMON_SRC))
	$(CC) $(SAN_CFLAGS) $(OPT) -o $@ $^ $(PKG_LIBS) -lpthread $(LDFLAGS)

# A loaded library is never written over: link beside it, then rename.
$(B)/libweft_probe.so: $(call pobj,$(PROBE_SRC)) instance/probe/export.map
	$(CC) $(PROBE_SAN) $(OPT) -shared -o $@.new $(filter %.o,$^) -Wl,--version-script=instance/probe/export.map \
	  -Wl,--no-undefined -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -Wl,--build-id -Wl,-soname,libweft_probe.so
	mv $@.new $@

$(B)/libweft_all.a: $(call obj,$(ALL_SRC)) $(PAGE_OBJ) $(GEN_OBJ)
	rm -f $@
	ar rcs $@ $^

$(B)/tests/unit/%: $(B)/obj/tests/unit/%.o $(B)/libweft_all.a
	@mkdir -p $(@D)
	$(CC) $(SAN_CFLAGS) $(OPT) -o $@ $< $(B)/libweft_all.a $(PKG_LIBS) -lcmocka -lm -lpthread $(LDFLAGS)

# Benchmarks link the objects that are shipped, the probe's included.
$(B)/tests/bench/%: $(B)/obj/tests/bench/%.o $(call pobj,$(PROBE_SRC)) $(call obj,$(filter-out $(PROBE_SRC),$(ALL_SRC))) $(PAGE_OBJ) $(GEN_OBJ)
	@mkdir -p $(@D)
	$(CC) $(SAN_CFLAGS) $(OPT) -o $@ $^ $(PKG_LIBS) -lm -lpthread $(LDFLAGS)

# Fuzz targets: libFuzzer's main where FUZZ is set (make fuzz), else one that replays files.
FUZZ_SECONDS ?= 60
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZERS := $(patsubst %.c,$(B)/%,$(FUZZ_SRC))
$(B)/tests/fuzz/%: $(B)/obj/tests/fuzz/%.o $(if $(FUZZ),,$(B)/obj/tests/fuzz/replay.o) $(B)/libweft_all.a
	@mkdir -p $(@D)
	$(CC) $(SAN_CFLAGS) $(if $(FUZZ),-fsanitize=fuzzer) $(OPT) -o $@ $(filter %.o,$^) $(B)/libweft_all.a $(PKG_LIBS) -lm -lpthread $(LDFLAGS)
fuzzers: $(FUZZERS)
fuzz:
	$(MAKE) FUZZ=1 CC=clang SAN=fuzzer-no-link,address,undefined B=build/fuzz fuzzers
	scripts/fuzz build/fuzz $(FUZZ_SECONDS)

# What the fault tests start: a writer of events on the shipped objects, and a clock that can be shifted.
$(B)/tests/fault/event_writer: $(B)/obj/tests/fault/event_writer.o $(call pobj,instance/shm/writer.c common/ids.c $(if $(FAULTS),common/fault_step.c))
	@mkdir -p $(@D)
	$(CC) $(OPT) $(PROBE_SAN) -o $@ $^ -lpthread $(LDFLAGS)
# A client and a server through the hooks, while one internal step of the probe after the other fails.
$(B)/tests/fault/probe_steps: $(B)/obj/tests/fault/probe_steps.o $(call pobj,$(PROBE_SRC))
	@mkdir -p $(@D)
	$(CC) $(OPT) $(PROBE_SAN) -o $@ $^ -lpthread $(LDFLAGS)
$(B)/tests/fault/libclock_shift.so: tests/fault/clock_shift.c
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) -fPIC -shared -o $@ $< -ldl

tests: $(TESTS) $(FUZZERS)
fault-tools: all $(B)/tests/fault/event_writer $(B)/tests/fault/probe_steps $(B)/tests/fault/libclock_shift.so
check: all tests
	scripts/check --no-install
bench: all $(BENCHES)
	scripts/bench $(B)
stress:
	$(MAKE) FAULTS=1 fault-tools
	scripts/stress
man: $(B)/weft
	mkdir -p $(B)/man && $(B)/weft --man > $(B)/man/weft.1

install: all man
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR) $(DESTDIR)$(PREFIX)/share/man/man1 \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install -m 755 $(B)/weft $(DESTDIR)$(PREFIX)/bin/weft
	install -m 755 $(B)/weft-instance $(DESTDIR)$(PREFIX)/bin/weft-instance
	install -m 755 $(B)/libweft_probe.so $(DESTDIR)$(LIBDIR)/libweft_probe-$(VERSION).so
	install -m 644 $(B)/man/weft.1 $(DESTDIR)$(PREFIX)/share/man/man1/weft.1
	$(B)/weft --completion > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/weft

clean:
	rm -rf build

-include $(shell find $(B)/obj $(B)/probe-obj -name '*.d' 2>/dev/null)
.PHONY: all tests fault-tools check bench stress fuzz fuzzers man install clean
.SECONDARY:
.DELETE_ON_ERROR:
