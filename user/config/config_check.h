/* SPDX-License-Identifier: GPL-2.0 */
/* Whether a document has the shape of a schema of libcyaml, which by itself would end at the first error. */
#ifndef SLUICE_CONFIG_CHECK_H
#define SLUICE_CONFIG_CHECK_H

#include <cyaml/cyaml.h>

#include "config/document.h"

struct shape {
	unsigned int errors;
	bool loads; /* libcyaml can read it all the same */
};

/* Says every unknown key, every key given twice and every node of the wrong kind, with its place. */
struct shape config_check(struct document *document, const cyaml_schema_value_t *schema);

#endif
