// SPDX-License-Identifier: GPL-2.0
#include "attach/refuse.h"

#include <errno.h>
#include <string.h>

#include "base/netns.h"
#include "base/text.h"

/*
 * Formats the command that attaches the gate on hook ingress. Hook ingress works on a device with
 * another XDP program.
 */
static const char *other_hook(const struct gate *gate, const struct netdev *device,
			      char text[COMMAND_TEXT])
{
	struct attachment other = attachment_of(device, HOOK_INGRESS);

	return attachment_command("attach", &other, gate->name, text);
}

int xdp_relative_refuse(const struct gate *gate, const struct netdev *device)
{
	_cleanup_netdevs_ struct netdevs devices = {0};
	char other[COMMAND_TEXT], holder[XDP_OWNER_TEXT];
	const struct netdev *relative;
	struct xdp_owner owner;
	int err = netdevs_read(&devices);
	bool is_ours;

	if (err)
		return err;
	relative = netdevs_find_xdp(&devices, device->ifindex);
	if (!relative)
		return 0;
	owner = xdp_owner_find(relative->ifindex);
	/*
	 * if this gate is attached to `relative`, do not advise another hook on `device`, because
	 * the gate would charge each packet twice
	 */
	is_ours = !strcmp(owner.gate, gate->name);
	return error_add(
		EBUSY, "hook-taken", device->name,
		"%s, %s this device, has an XDP program already, so the kernel allows none here: "
		"%s; "
		"detach that program first%s%s%s",
		relative->name,
		netdevs_are_stacked(&devices, relative->ifindex, device->ifindex) ? "above"
										  : "below",
		xdp_owner_format(&owner, holder), is_ours ? "" : ", or filter beside it: '",
		is_ours ? "" : other_hook(gate, device, other), is_ours ? "" : "'");
}

int xdp_owner_refuse(const struct gate *gate, const struct netdev *device)
{
	struct xdp_owner owner = xdp_owner_find(device->ifindex);
	bool is_libxdp = xdp_owner_is_libxdp(&owner);
	char other[COMMAND_TEXT], chain[COMMAND_TEXT];
	struct attachment chained;
	int err = owner.program_id ? 0 : xdp_relative_refuse(gate, device);

	if (err)
		return err;
	other_hook(gate, device, other);
	if (*owner.gate)
		return error_add(
			EBUSY, "hook-taken", NULL,
			"%s has an XDP program of gate '%s', and room for only one; detach it "
			"first: 'sluice %s-g %s detach %s hook xdp', or filter beside it: '%s'",
			device->name, owner.gate, netns_typed(), owner.gate,
			operand_typed(device->name), other);
	chained = attachment_of(device, HOOK_XDP);
	chained.mode = is_libxdp ? MODE_LIBXDP : MODE_CHAIN;
	attachment_command("attach", &chained, gate->name, chain);
	return error_add(EBUSY, "hook-taken", NULL,
			 "%s has an XDP program already: '%s', id %u%s; detach that first (%s), "
			 "%s: '%s', or filter after it: '%s'",
			 device->name, owner.name, owner.program_id,
			 is_libxdp ? ", the dispatcher of libxdp" : "",
			 is_libxdp ? "'xdp-loader status' lists what it calls"
				   : "'bpftool net' lists it",
			 is_libxdp ? "add sluice to it" : "run it after sluice", chain, other);
}
