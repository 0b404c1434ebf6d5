// SPDX-License-Identifier: GPL-2.0
#include "serve/assets.h"

/* Embeds a file of this directory in the program, between the symbols NAME and NAME_end. */
#define EMBED(name, file)                                                                          \
	__asm__(".pushsection .rodata\n"                                                           \
		".global " #name "\n" #name ":\n.incbin \"user/serve/" file "\"\n"                 \
		".global " #name "_end\n" #name "_end:\n.byte 0\n.popsection\n");                  \
	extern const char name[], name##_end[]

EMBED(asset_page, "page.html");
EMBED(asset_script, "page.js");
EMBED(asset_style, "page.css");
EMBED(asset_openapi, "openapi.json");

struct asset asset_of(enum route_id route)
{
	switch (route) {
	case ROUTE_SCRIPT:
		return (struct asset){"text/javascript; charset=utf-8", asset_script,
				      asset_script_end - asset_script};
	case ROUTE_STYLE:
		return (struct asset){"text/css; charset=utf-8", asset_style,
				      asset_style_end - asset_style};
	case ROUTE_OPENAPI:
		return (struct asset){"application/json", asset_openapi,
				      asset_openapi_end - asset_openapi};
	default:
		return (struct asset){"text/html; charset=utf-8", asset_page,
				      asset_page_end - asset_page};
	}
}
