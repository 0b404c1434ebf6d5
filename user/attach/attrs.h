/* SPDX-License-Identifier: GPL-2.0 */
/* Attach: the attributes of a netlink message, by type. */
#ifndef SLUICE_ATTRS_H
#define SLUICE_ATTRS_H

#include <libmnl/libmnl.h>

struct attrs {
	unsigned int max; /* the highest type; newer kernels have more */
	const struct nlattr **table;
};

/* A callback of mnl_attr_parse(); data: struct attrs. A type beyond the table is left out. */
static inline int attr_keep(const struct nlattr *attr, void *data)
{
	struct attrs *attrs = data;

	if (mnl_attr_type_valid(attr, attrs->max) > 0)
		attrs->table[mnl_attr_get_type(attr)] = attr;
	return MNL_CB_OK;
}

#endif
