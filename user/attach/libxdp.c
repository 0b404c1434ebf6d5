// SPDX-License-Identifier: GPL-2.0
#include "attach/libxdp.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#ifdef SL_LIBXDP
#include <xdp/libxdp.h>
#endif

#include "attach/attachment.h"
#include "attach/components.h"
#include "attach/refuse.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/netns.h"
#include "gate/maps.h"

#ifdef SL_LIBXDP

/* --- The library ---------------------------------------------------------------------------- */

#define FUNCTION(name) __typeof__(name) *name

/* The functions of libxdp. */
static struct library {
	FUNCTION(libxdp_set_print);
	FUNCTION(libxdp_get_error);
	FUNCTION(xdp_program__create);
	FUNCTION(xdp_program__close);
	FUNCTION(xdp_program__id);
	FUNCTION(xdp_program__run_prio);
	FUNCTION(xdp_program__set_run_prio);
	FUNCTION(xdp_program__set_chain_call_enabled);
	FUNCTION(xdp_program__attach);
	FUNCTION(xdp_program__detach);
	FUNCTION(xdp_multiprog__get_from_ifindex);
	FUNCTION(xdp_multiprog__next_prog);
	FUNCTION(xdp_multiprog__is_legacy);
	FUNCTION(xdp_multiprog__attach_mode);
	FUNCTION(xdp_multiprog__close);
} xdp;

#define SYMBOL(name)                                                                               \
	{                                                                                          \
#name, (void **)&xdp.name                                                          \
	}

/* Loads libxdp, unless it is loaded. Adds an error if this fails. */
static int library_load(void)
{
	static const struct {
		const char *name;
		void **function;
	} symbols[] = {
		SYMBOL(libxdp_set_print),
		SYMBOL(libxdp_get_error),
		SYMBOL(xdp_program__create),
		SYMBOL(xdp_program__close),
		SYMBOL(xdp_program__id),
		SYMBOL(xdp_program__run_prio),
		SYMBOL(xdp_program__set_run_prio),
		SYMBOL(xdp_program__set_chain_call_enabled),
		SYMBOL(xdp_program__attach),
		SYMBOL(xdp_program__detach),
		SYMBOL(xdp_multiprog__get_from_ifindex),
		SYMBOL(xdp_multiprog__next_prog),
		SYMBOL(xdp_multiprog__is_legacy),
		SYMBOL(xdp_multiprog__attach_mode),
		SYMBOL(xdp_multiprog__close),
	};
	static void *library;

	if (library)
		return 0;
	library = dlopen("libxdp.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return error_add(ENOENT, "no-libxdp", NULL,
				 "mode libxdp requires libxdp.so.1, which cannot be loaded; "
				 "install it: 'apt-get install libxdp1'");
	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		*symbols[i].function = dlsym(library, symbols[i].name);
		if (*symbols[i].function)
			continue;
		dlclose(library);
		library = NULL;
		return error_add(ENOSYS, "old-libxdp", NULL,
				 "mode libxdp requires function %s, which this libxdp lacks; "
				 "install libxdp 1.3 or newer",
				 symbols[i].name);
	}
	xdp.libxdp_set_print(NULL);
	return 0;
}

static void program_close(struct xdp_program **program)
{
	if (*program)
		xdp.xdp_program__close(*program);
}

static void multiprog_close(struct xdp_multiprog **multiprog)
{
	if (*multiprog)
		xdp.xdp_multiprog__close(*multiprog);
}

/* Returns the components of the device, or NULL if it has no XDP program. */
static struct xdp_multiprog *multiprog_open(unsigned int ifindex)
{
	struct xdp_multiprog *multiprog = xdp.xdp_multiprog__get_from_ifindex(ifindex);

	return xdp.libxdp_get_error(multiprog) ? NULL : multiprog;
}

/* Returns the component with this program, or NULL. */
static struct xdp_program *component_find(struct xdp_multiprog *multiprog, uint32_t id)
{
	struct xdp_program *program = NULL;

	while (multiprog && (program = xdp.xdp_multiprog__next_prog(program, multiprog)))
		if (xdp.xdp_program__id(program) == id)
			return program;
	return NULL;
}

/* --- Changes -------------------------------------------------------------------------------- */

/*
 * Loads a program with the maps of `gate`, and adds it to the components of the device. Stores its
 * id. Returns 0 or a negative errno.
 */
static int component_add(const struct gate *gate, unsigned int ifindex, unsigned int priority,
			 uint32_t *ret_id)
{
	_cleanup_object_ struct bpf_object *object = object_open_for(gate, "sluice_xdp");
	__attribute__((cleanup(program_close))) struct xdp_program *program = NULL;
	__attribute__((cleanup(multiprog_close))) struct xdp_multiprog *before = NULL,
								       *after = NULL;
	DECLARE_LIBXDP_OPTS(xdp_program_opts, opts, .obj = object, .prog_name = "sluice_xdp");
	enum xdp_attach_mode mode = XDP_MODE_NATIVE;
	int err;

	if (!object)
		return -EIO;
	before = multiprog_open(ifindex);
	if (before)
		mode = xdp.xdp_multiprog__attach_mode(before);
	program = xdp.xdp_program__create(&opts);
	err = xdp.libxdp_get_error(program);
	if (err) {
		program = NULL;
		return err;
	}
	err = xdp.xdp_program__set_run_prio(program, priority)
		      ?: xdp.xdp_program__set_chain_call_enabled(program, XDP_PASS, true)
		      ?: xdp.xdp_program__attach(program, ifindex, mode, 0);
	if (err)
		return err;
	/* without freplace, libxdp attaches the program alone */
	after = multiprog_open(ifindex);
	*ret_id = xdp.xdp_program__id(program);
	if (after && !xdp.xdp_multiprog__is_legacy(after))
		return 0;
	xdp.xdp_program__detach(program, ifindex, mode, 0);
	return -EOPNOTSUPP;
}

static int component_remove(unsigned int ifindex, uint32_t id)
{
	__attribute__((cleanup(multiprog_close))) struct xdp_multiprog *all = NULL;
	struct xdp_program *program;
	int err = library_load();

	if (err)
		return err;
	all = multiprog_open(ifindex);
	program = component_find(all, id);
	return program ? xdp.xdp_program__detach(program, ifindex,
						 xdp.xdp_multiprog__attach_mode(all), 0)
		       : -ENOENT;
}

/* Removes all components that use the gate's map `secret`, except `kept_id`. */
static int components_remove(const struct gate *gate, const struct attachment *a, uint32_t kept_id)
{
	_cleanup_close_ int secret = pin_open(&gate->links, attachment_pin(a, PIN_ATTACHMENT).text);
	struct components all;
	int err = 0;

	components_read(a->ifindex, gate_map_id(secret), &all);
	for (unsigned int i = 0; !err && i < all.count; i++)
		if (all.list[i].is_ours && all.list[i].id != kept_id)
			err = component_remove(a->ifindex, all.list[i].id);
	return err;
}

static int add_failed(const struct gate *gate, const struct netdev *device, int err)
{
	struct xdp_owner owner = xdp_owner_find(device->ifindex);

	/* the device, or one above or below it, has an XDP program that is no dispatcher */
	if ((err == -EBUSY || err == -EEXIST) && !xdp_owner_is_libxdp(&owner))
		return xdp_owner_refuse(gate, device);
	return error_add(err, "libxdp", NULL,
			 "cannot add a component to the dispatcher of libxdp on %s: %s%s",
			 device->name, why(err),
			 err == -EOPNOTSUPP ? "; the device has no native XDP, or this kernel lets "
					      "no program extend another one; use mode auto"
					    : "");
}

/* Removes the pins of the attachment. */
static int pins_forget(const struct gate *gate, const struct attachment *a)
{
	int err = pin_remove(&gate->links, attachment_pin(a, PIN_ATTACHMENT).text);

	if (!err || err == -ENOENT)
		pin_remove(&gate->links, attachment_pin(a, PIN_WORDS).text);
	return err;
}

int libxdp_attach(const struct gate *gate, const struct netdev *device, unsigned int priority,
		  struct attachment *ret)
{
	struct attachment a = attachment_of(device, HOOK_XDP);
	struct pin_name name;
	uint32_t id;
	int err = library_load();

	a.mode = MODE_LIBXDP;
	a.priority = priority;
	name = attachment_pin(&a, PIN_ATTACHMENT);
	err = err ?: attachment_words_write(gate, &a);
	if (err)
		return err;
	err = pin_replace(&gate->links, name.text, gate->map[MAP_SECRET]);
	if (err)
		return pin_failed("make", &gate->links, name.text, err);
	err = component_add(gate, a.ifindex, priority, &id);
	if (err)
		add_failed(gate, device, err);
	err = err ?: attachment_look(gate, &a);
	*ret = a;
	if (err)
		pins_forget(gate, &a);
	return err;
}

int libxdp_detach(const struct gate *gate, struct attachment a)
{
	struct pin_name name = attachment_pin(&a, PIN_ATTACHMENT);
	_cleanup_netns_ int back = -1;
	int err = attachment_look(gate, &a);

	if (err)
		return err;
	if (a.program_id) {
		err = netns_visit(a.netns, &back) ?: components_remove(gate, &a, 0);
		if (err)
			return error_add(err, "detach", NULL, "cannot detach from %s: %s", a.device,
					 why(err));
		netns_return(&back);
	}
	err = pins_forget(gate, &a);
	return !err || err == -ENOENT ? 0 : pin_failed("remove", &gate->links, name.text, err);
}

/* Reads the run priority of the component from libxdp, and writes it as PIN_WORDS. */
static int words_restore(const struct gate *gate, struct attachment *a)
{
	__attribute__((cleanup(multiprog_close))) struct xdp_multiprog *all = NULL;
	struct xdp_program *program;
	int err = library_load();

	if (err)
		return err;
	all = multiprog_open(a->ifindex);
	program = component_find(all, a->program_id);
	a->priority = program ? xdp.xdp_program__run_prio(program) : 0;
	return program ? attachment_words_write(gate, a) : -ENOENT;
}

/*
 * Removes all components of the gate from the device except one. Restores PIN_WORDS if a killed
 * change of the priority removed it.
 */
static void component_expire(const struct gate *gate, struct attachment a)
{
	unsigned int mark = error_count();
	_cleanup_netns_ int back = -1;
	int err = attachment_look(gate, &a);

	if (!err && !a.program_id)
		return;
	err = err ?: netns_visit(a.netns, &back) ?: components_remove(gate, &a, a.program_id);
	if (!err && !pin_exists(&gate->links, attachment_pin(&a, PIN_WORDS).text))
		words_restore(gate, &a);
	error_drop(mark);
	if (err)
		error_notice("two-components", a.device,
			     "cannot remove a component that a killed upgrade left, so packets are "
			     "charged twice: %s",
			     why(err));
}

static int is_component(const struct dirent *entry)
{
	struct attachment a;

	return attachment_of_pin(entry->d_name, &a) && a.mode == MODE_LIBXDP;
}

int libxdp_expire(const struct gate *gate)
{
	struct dirent **entries;
	struct attachment a;
	int count, err = pins_list(&gate->links, is_component, &entries, &count);

	if (err)
		return err;
	for (int i = 0; i < count; i++) {
		if (attachment_of_pin(entries[i]->d_name, &a))
			component_expire(gate, a);
		free(entries[i]);
	}
	free(entries);
	return 0;
}

int libxdp_replace(const struct gate *gate, const struct gate *next, unsigned int priority,
		   struct attachment *a)
{
	__attribute__((cleanup(multiprog_close))) struct xdp_multiprog *all = NULL;
	_cleanup_netns_ int back = -1;
	struct xdp_program *old;
	uint32_t id;
	int err = library_load() ?: netns_visit(a->netns, &back);

	if (err)
		return err;
	all = multiprog_open(a->ifindex);
	old = component_find(all, a->program_id);
	if (old && !priority)
		priority = xdp.xdp_program__run_prio(old);
	err = component_add(next, a->ifindex, priority ?: PRIORITY_DEFAULT, &id);
	if (err)
		return err;
	a->program_id = id;
	return components_remove(gate, a, id);
}

#else

/* Adds the error that this build cannot use libxdp. */
static int refuse_build(void)
{
	return error_add(EOPNOTSUPP, "no-libxdp", NULL,
			 "this sluice was built without libxdp; install libxdp-dev and build it "
			 "again");
}

int libxdp_attach(const struct gate *gate, const struct netdev *device, unsigned int priority,
		  struct attachment *ret)
{
	(void)gate, (void)device, (void)priority, (void)ret;
	return refuse_build();
}

int libxdp_detach(const struct gate *gate, struct attachment a)
{
	(void)gate, (void)a;
	return refuse_build();
}

int libxdp_expire(const struct gate *gate)
{
	(void)gate;
	return 0;
}

int libxdp_replace(const struct gate *gate, const struct gate *next, unsigned int priority,
		   struct attachment *a)
{
	(void)gate, (void)next, (void)priority, (void)a;
	return refuse_build();
}

#endif
