/* SPDX-License-Identifier: GPL-2.0 */
/* A gate of an older schema as tests/tools/record_gate.py recorded it, in tests/data/schemaN. */
#ifndef SLUICE_TEST_RECORDED_GATE_H
#define SLUICE_TEST_RECORDED_GATE_H

#include <jansson.h>
#include <linux/bpf.h>

#include "test.h"
#include "capture.h"
#include "gate/counters.h"
#include "gate/old_schema.h"
#include "gate/policy.h"
#include "rules/ruleset.h"

static const struct machine machine = {.cpus = 2, .jiffy_ns = JIFFY_NS};

/* --- What was in its maps ------------------------------------------------------------------- */

static json_t *maps; /* of gate.json */

static inline int recorded_open(const char *path)
{
	json_t *gate = json_load_file(path, 0, NULL);

	maps = json_incref(json_object_get(gate, "maps"));
	json_decref(gate);
	return maps ? 0 : -1;
}

static inline int recorded_close(void **state)
{
	(void)state;
	json_decref(maps);
	return 0;
}

static inline const json_t *map_recorded(const char *name)
{
	return json_object_get(maps, name);
}

static inline unsigned int number_of(const char *map, const char *key)
{
	return json_integer_value(json_object_get(map_recorded(map), key));
}

static inline void bytes_of(const char *hex, void *ret, size_t size)
{
	uint8_t *bytes = ret;

	assert_int_equal(strlen(hex), 2 * size);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &bytes[i]), 1);
}

typedef void entry_check(const void *key, const void *value, void *data);

/* Calls `call` with each value that a map held, of each CPU. The sizes are those of the schema. */
static inline void each_entry(const struct old_schema *schema, enum gate_map map, entry_check *call,
			      void *data)
{
	const json_t *holds = json_object_get(map_recorded(gate_map_names[map]), "holds");
	uint64_t key[8], value[OLD_VALUE_MAX / sizeof(uint64_t)];

	assert_true(json_array_size(holds) > 0);
	for (size_t i = 0; i < json_array_size(holds); i++) {
		const json_t *entry = json_array_get(holds, i);
		const json_t *values = json_object_get(entry, "values");

		bytes_of(json_string_value(json_object_get(entry, "key")), key,
			 schema->map[map].key_size);
		for (size_t cpu = 0; cpu < json_array_size(values); cpu++) {
			bytes_of(json_string_value(json_array_get(values, cpu)), value,
				 schema->map[map].value_size);
			call(key, value, data);
		}
	}
}

/* --- Checks --------------------------------------------------------------------------------- */

static inline uint32_t type_of(const char *name)
{
	static const char *const names[] = {
		[BPF_MAP_TYPE_HASH] = "hash",
		[BPF_MAP_TYPE_ARRAY] = "array",
		[BPF_MAP_TYPE_PERCPU_ARRAY] = "percpu_array",
		[BPF_MAP_TYPE_LRU_HASH] = "lru_hash",
		[BPF_MAP_TYPE_LRU_PERCPU_HASH] = "lru_percpu_hash",
		[BPF_MAP_TYPE_LPM_TRIE] = "lpm_trie",
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i] && !strcmp(names[i], name))
			return i;
	return 0;
}

/* How many of the maps are none of this version's, and are not read. */
static inline unsigned int maps_unread(const struct old_schema *schema)
{
	unsigned int count = 0;

	for (const char *const *name = old_pins; *name; name++) {
		count += json_object_get(maps, *name) != NULL;
		for (int map = GATE_MAPS; map < ALL_MAPS; map++)
			if (!strcmp(gate_map_names[map], *name) && schema->map[map].type)
				count--;
	}
	return count;
}

static inline void check_shapes(const struct old_schema *schema)
{
	unsigned int known = 0;

	for (int map = 0; map < ALL_MAPS; map++) {
		const struct map_shape *shape = &schema->map[map];
		const char *name = gate_map_names[map], *type;

		if (!shape->type)
			continue;
		type = json_string_value(json_object_get(map_recorded(name), "type"));
		assert_int_equal(shape->type, type_of(type));
		assert_int_equal(shape->key_size, number_of(name, "key"));
		assert_int_equal(shape->value_size, number_of(name, "value"));
		known++;
	}
	assert_int_equal(known, json_object_size(maps) - maps_unread(schema));
}

static inline void check_map_ids(const struct old_schema *schema, const struct sl_gate *gate)
{
	for (int map = 0; map < ALL_MAPS; map++)
		assert_int_equal(gate->map_ids[map],
				 schema->map[map].type ? number_of(gate_map_names[map], "id") : 0);
}

/* What the old version said of its policies, and how many lines of that were found. */
struct said {
	char *text;
	const char *unsaid; /* what that version did not say at the end of a line; NULL: nothing */
	unsigned int lines;
};

/* A policy, as `show` prints it, must be just so what the old version said. */
static inline void check_shown(const struct sl_policy *policy, struct said *said)
{
	struct rule rule = {.prefix = policy->prefix};
	struct capture capture = capture_begin(stdout);
	char *shown, *line;

	assert_int_equal(policy_limits(policy, &rule), OK);
	rule_print(&rule, NULL, NULL, "GATE", "");
	shown = strdup(capture_end(&capture));
	rule_free(&rule);
	for (line = strtok(shown, "\n"); line; line = strtok(NULL, "\n")) {
		char *unsaid = said->unsaid ? strstr(line, said->unsaid) : NULL;

		if (unsaid)
			*unsaid = '\0';
		if (!strstr(said->text, line))
			print_error("not said by the old version: %s\n", line);
		assert_non_null(strstr(said->text, line));
		said->lines++;
	}
	free(shown);
}

/* A compiled limit, whose words 0, 1 and 7 are cost, burst and id in schemas 4 and 5. */
static inline void check_limit(const struct sl_limit *limit, const __u64 words[9])
{
	assert_int_equal(limit->cost, words[0]);
	assert_int_equal(limit->burst, words[1]);
	assert_int_equal(limit->id, (uint32_t)words[7]);
}

/* --- What the old version said -------------------------------------------------------------- */

static inline char *file_read(const char *path)
{
	static char text[1 << 14];
	FILE *file = fopen(path, "re");
	size_t length;

	assert_non_null(file);
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = '\0';
	fclose(file);
	return text;
}

static inline unsigned int lines_with(const char *text, const char *word)
{
	unsigned int count = 0;

	while ((text = strstr(text, word))) {
		count++;
		text++;
	}
	return count;
}

#endif
