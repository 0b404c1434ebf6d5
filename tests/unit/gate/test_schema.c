// SPDX-License-Identifier: GPL-2.0
/*
 * SL_SCHEMA is the version of the layout of a gate's maps. This test hashes the layout of each map,
 * and compares the digest with that of schema RECORDED_SCHEMA. If a layout changes, increase
 * SL_SCHEMA in include/sluice.h. Then replace `recorded` and RECORDED_SCHEMA by the lines that this
 * test prints.
 */
#include "test.h"

#include <inttypes.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/array.h"
#include "gate/gate.h"
#include "gate/maps.h"
#include "sluice.h"

#define RECORDED_SCHEMA 1

/* The maps, in the order of enum gate_map. */
static const struct {
	const char *map;
	uint64_t digest;
} recorded[] = {
	{"gate", 0x3d9d44add45d195f},	    {"hosts4", 0x40905bec4e02884b},
	{"hosts6", 0xd06c133f12f0cf37},	    {"prefixes", 0x110f68f01f8ed9fa},
	{"splits", 0x7374f8e2e19aef84},	    {"lists", 0x744fcc45dac6849c},
	{"policies", 0xde10a5e982701d9d},   {"counters", 0x7527a5ef45c90092},
	{"sets", 0x19ea99a42be7c09a},	    {"states", 0xf436e2debec11252},
	{"buckets4", 0x0bcca59fd0b55397},   {"buckets6", 0x6822322a1c888fcb},
	{"in_use", 0xf004e6d5bb8db1e5},	    {"admission", 0x29afae83b3ae794d},
	{"sketches", 0xf8544570f915a724},   {"rule_cache", 0x11a6b5fefb6c2efc},
	{"host_cache", 0x7b779ea8b4fd4940}, {"subrules", 0xe158643891adc8d7},
	{"budgets", 0x30673791ed1d59b3},    {"budget_slices", 0xb1471b2bdf7dadb6},
	{"durations", 0xa2e8e7f6d88d1524},  {"events", 0x47ff8b82fb33edde},
	{"offenders", 0xfc69b1c80ddd64c2},  {"secret", 0x8f652f7c85ef811c},
};

static void digest_add(uint64_t *digest, const void *bytes, size_t size)
{
	for (const uint8_t *byte = bytes; size--; byte++)
		*digest = (*digest ^ *byte) * 0x100000001b3;
}

static void digest_number(uint64_t *digest, uint32_t number)
{
	digest_add(digest, &number, sizeof(number));
}

/* Adds a type to a digest: the size of the type, and the name and offset of each struct member. */
static void digest_type(uint64_t *digest, const struct btf *btf, uint32_t id)
{
	const struct btf_type *type;
	int base = btf__resolve_type(btf, id); /* typedefs and qualifiers are skipped */

	assert_true(base >= 0);
	type = btf__type_by_id(btf, base);
	digest_number(digest, btf_kind(type));
	digest_number(digest, btf__resolve_size(btf, base));
	if (btf_is_array(type)) {
		digest_number(digest, btf_array(type)->nelems);
		digest_type(digest, btf, btf_array(type)->type);
	}
	for (uint16_t i = 0; btf_is_composite(type) && i < btf_vlen(type); i++) {
		const struct btf_member *member = &btf_members(type)[i];
		const char *name = btf__name_by_offset(btf, member->name_off);

		digest_add(digest, name, strlen(name) + 1);
		digest_number(digest, btf_member_bit_offset(type, i));
		digest_number(digest, btf_member_bitfield_size(type, i));
		digest_type(digest, btf, member->type);
	}
}

static uint64_t digest_map(const struct btf *btf, const struct bpf_map *map)
{
	uint64_t digest = 0xcbf29ce484222325;

	digest_number(&digest, bpf_map__type(map));
	digest_number(&digest, bpf_map__key_size(map));
	digest_number(&digest, bpf_map__value_size(map));
	if (bpf_map__btf_key_type_id(map)) /* the type id is 0 for the map of global variables */
		digest_type(&digest, btf, bpf_map__btf_key_type_id(map));
	if (bpf_map__btf_value_type_id(map)) /* a ring buffer has no type of values */
		digest_type(&digest, btf, bpf_map__btf_value_type_id(map));
	return digest;
}

static bool is_recorded(int map, uint64_t digest)
{
	return map < (int)ARRAY_SIZE(recorded) && !strcmp(recorded[map].map, gate_map_names[map]) &&
	       recorded[map].digest == digest;
}

TEST(test_layouts_have_the_schema_that_is_recorded)
{
	struct bpf_object *object = object_open();
	bool same = SL_SCHEMA == RECORDED_SCHEMA && ARRAY_SIZE(recorded) == GATE_MAPS;
	uint64_t digests[GATE_MAPS];

	assert_non_null(object);
	for (int map = 0; map < GATE_MAPS; map++) {
		digests[map] = digest_map(bpf_object__btf(object), object_map(object, map));
		if (!is_recorded(map, digests[map])) {
			print_message("map '%s' has another layout\n", gate_map_names[map]);
			same = false;
		}
	}
	bpf_object__close(object);
	if (same)
		return;
	print_message("#define RECORDED_SCHEMA %d\n", SL_SCHEMA);
	for (int map = 0; map < GATE_MAPS; map++)
		print_message("\t{\"%s\", 0x%016" PRIx64 "},\n", gate_map_names[map], digests[map]);
	fail_msg("schema %d was recorded with other layouts: raise SL_SCHEMA in include/sluice.h, "
		 "and record the lines above in " __FILE__,
		 RECORDED_SCHEMA);
}

TESTS(NULL, NULL)
