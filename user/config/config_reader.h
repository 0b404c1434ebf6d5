/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Config: reads the document of a rules file by tables of keys. A key has the type of its value, as
 * a word of a command has. An error is added with its place, and reading goes on.
 */
#ifndef SLUICE_CONFIG_READER_H
#define SLUICE_CONFIG_READER_H

#include "config/config.h"
#include "config/document.h"
#include "rules/limit_words.h"
#include "rules/value.h"

/* --- Tables of keys ------------------------------------------------------------------------- */

struct config_reader;
struct config_map;

/* All keys are optional here: the finish functions report a missing key. */
struct config_key {
	const char *name;
	const struct value_type *type; /* of a word, or of the words of a list; NULL: no word */
	const struct config_map *map;  /* of a map, or of the maps of a list; NULL: no map */
	bool is_list;
	size_t offset; /* of the value, in the struct of the map; of a list: none */
};

/* A map that is being read. */
struct config_item {
	const struct config_map *map;
	const struct node *node;
	void *data;   /* the struct of the map */
	void *parent; /* the struct of the map around it */
	int err;      /* of the values; 0: all are read */
};

/* docs/sluice.schema.json describes the same maps, and changes with them. */
struct config_map {
	const struct config_key *keys;
	unsigned int count;
	size_t size;	  /* of its struct, whose values are 0 if they are not given */
	bool or_word;	  /* an item of a list may be a word instead, the value of the first key */
	int access;	  /* enum sl_access, of the entries of `allow` and `deny` */
	const char *many; /* a noun for its words: "prefixes" */
	void (*begin)(struct config_reader *reader, const struct config_item *item);
	int (*finish)(struct config_reader *reader, const struct config_item *item);
};

/* Reads a map of the document. name: what it is, for errors. Returns 0 or the first error. */
int config_map_read(struct config_reader *reader, const struct node *node, const char *name,
		    const struct config_map *map, void *parent);

/* The keys of a rules file. */
extern const struct config_map config_file_map;

/* --- The reader ----------------------------------------------------------------------------- */

/* A policy, an entry by hand or an entry of a list, which one place of the file specifies. */
struct claim {
	struct rule rule;
	struct position at;
};

struct config_reader {
	const char *path; /* relative names of list files begin at its directory */
	bool leaves_out;  /* lists with a bad file, see config_parse_most() */
	struct document document;
	struct config config;
	struct spec defaults; /* the fields of `defaults` */
	uint8_t defaults_per[SL_FAMILIES];
	struct claim *claims;
	unsigned int claim_count, claim_room;
	/* the last value of `for` and its end: entries of equal times end together */
	uint64_t for_ns;
	uint32_t for_until;
	/* the number of entries whose `until` has passed, and the first of them */
	unsigned int ended;
	struct position first_ended;
	int err; /* the first error, or a later error that is no misuse */
};

/* Remembers an error, and returns it. */
int config_fail(struct config_reader *reader, int err);

/* Puts the place of a node before the errors from `mark` on, and remembers the error. */
int config_fail_at(struct config_reader *reader, unsigned int mark, struct position at, int err);

/* Adds a misuse with its place. Returns -EINVAL. */
#define config_refuse(reader, at, ...)                                                             \
	({                                                                                         \
		unsigned int mark_ = error_count();                                                \
		int err_ = error_misuse(__VA_ARGS__);                                              \
		config_fail_at(reader, mark_, at, err_);                                           \
	})

/* Adds a claim, and owns the policy of the rule, also on failure. */
int config_claim(struct config_reader *reader, const struct rule *rule, struct position at);

/* Finishes an entry of `allow` or `deny`. */
int config_entry_finish(struct config_reader *reader, const struct config_item *item);

struct config_entry {
	const char *prefix, *file, *list;
	bool force, skip;
	uint64_t for_ns;
	struct value_end until;
};

#endif
