/* SPDX-License-Identifier: MIT */
/* How does a chain become what the view of a program keeps of it? */
#include "format/view/reduce.h"

#include <string.h>

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool starts_with_any(const char *text, const char *const *prefixes)
{
	for (; *prefixes; prefixes++)
		if (starts_with(text, *prefixes))
			return true;
	return false;
}

/* ---- Classes ---------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/** @return The name of a native function's file. If only the function's name is known, and it
 * begins with the file's, as "luajit+0x1234": that name. "": unknown. */
static const char *module_of(const struct format_function *function)
{
	if (function->source && *function->source)
		return base_name(function->source);
	if (function->mapping)
		return base_name(function->mapping->path);
	return function->name && strstr(function->name, "+0x") ? function->name : "";
}

/** Whether a module or a symbol is LuaJIT's. Recorders know it of each function (FORMAT_KIND_VM);
 * older files and other tools do not tell. */
static bool is_luajit(const char *module, const char *name)
{
	static const char *const modules[] = { "luajit", "libluajit", NULL };
	static const char *const names[] = { "lj_", "lua_", "luaL_", "luaJIT_", "luaopen_", NULL };

	return starts_with_any(module, modules) || starts_with_any(name, names);
}

static bool is_runtime(const char *module, const char *name)
{
	static const char *const modules[] = { "libc.so",    "libc-2.",	 "libm.so",  "libm-2.",
					       "libpthread", "libdl.so", "librt.so", "ld-",
					       "libgcc_s",   "[vdso]",	 NULL };
	static const char *const names[] = { "__libc_start", NULL };

	return starts_with_any(module, modules) || starts_with_any(name, names) ||
	       strcmp(name, "_start") == 0;
}

/** Whether a name is only an offset in the module, as in "nginx+0x1234". */
static bool is_unnamed(const char *module, const char *name)
{
	const char *offset = strstr(name, "+0x");

	return *module && offset && starts_with(name, module) &&
	       strlen(module) >= (size_t)(offset - name);
}

static enum view_class native_class(const struct format_function *function)
{
	const char *module = module_of(function), *name = function->name ? function->name : "";

	if (is_runtime(module, name))
		return is_unnamed(module, name) ? VIEW_RUNTIME_UNNAMED : VIEW_RUNTIME;
	if (is_luajit(module, name))
		return VIEW_LUAJIT;
	if (is_unnamed(module, name))
		return VIEW_UNNAMED;
	return *module ? VIEW_OWN : VIEW_UNKNOWN;
}

enum view_class view_class_of(const struct format_function *function)
{
	const char *name = function->name ? function->name : "";

	switch (function->kind) {
	case FORMAT_KIND_LUA:
	case FORMAT_KIND_BUILTIN:
	case FORMAT_KIND_TRACE:
		return VIEW_LUA;
	case FORMAT_KIND_CFUNC:
		return is_unnamed(module_of(function), name) ? VIEW_NAMELESS : VIEW_CFUNC;
	case FORMAT_KIND_VM:
		return VIEW_LUAJIT;
	case FORMAT_KIND_NATIVE:
		return native_class(function);
	case FORMAT_KIND_PSEUDO:
		return starts_with(name, "[gc") || starts_with(name, "[jit") ? VIEW_LUA : VIEW_MARK;
	case FORMAT_KIND_PROCESS:
	case FORMAT_KIND_COUNT:
		break;
	}
	return VIEW_MARK;
}

/* ---- Chains ----------------------------------------------------------------------------- */

static bool is_native(enum view_class class)
{
	return class == VIEW_LUAJIT || class == VIEW_RUNTIME || class == VIEW_RUNTIME_UNNAMED ||
	       class == VIEW_OWN || class == VIEW_UNNAMED || class == VIEW_UNKNOWN;
}

static bool is_called(enum view_class class)
{
	return class == VIEW_CFUNC || class == VIEW_NAMELESS;
}

/** @return Where a chain enters Lua: the first Lua function, or else the first C function that Lua
 * called; @p count if there is neither. */
static size_t first_lua(const enum view_class *classes, size_t count)
{
	size_t called = count;

	for (size_t i = 0; i < count; i++) {
		if (classes[i] == VIEW_LUA)
			return i;
		if (is_called(classes[i]) && called == count)
			called = i;
	}
	return called;
}

/** @return The frame that names all code before @p end: the newest native one of the program's own
 * that has a name, else the newest without, else the oldest one of LuaJIT, else the oldest one. @p
 * end if there is none. */
static size_t naming_frame(const enum view_class *classes, size_t end)
{
	size_t oldest = end, luajit = end, unnamed = end;

	for (size_t i = end; i-- > 0;) {
		if (classes[i] == VIEW_OWN)
			return i;
		if (classes[i] == VIEW_UNNAMED && unnamed == end)
			unnamed = i;
		if (classes[i] == VIEW_LUAJIT)
			luajit = i;
		if (is_native(classes[i]))
			oldest = i;
	}
	return unnamed < end ? unnamed : luajit < end ? luajit : oldest;
}

/** Whether a native frame is shown. Functions without a name are their caller's work. @param inside
 * Whether LuaJIT called it: then its own functions and the C library's are the caller's work, too.
 */
static bool shows_native(enum view_class class, bool *inside)
{
	if (class == VIEW_LUAJIT)
		*inside = true;
	else if (class != VIEW_RUNTIME && class != VIEW_RUNTIME_UNNAMED)
		*inside = false;
	return !*inside && class != VIEW_UNNAMED && class != VIEW_RUNTIME_UNNAMED;
}

bool view_tells_nothing(const enum view_class *classes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (classes[i] != VIEW_UNKNOWN && classes[i] != VIEW_MARK)
			return false;
	return true;
}

size_t view_reduce(const enum view_class *classes, size_t count, enum format_native native,
		   struct view_step *ret_steps)
{
	size_t lua = first_lua(classes, count);
	size_t naming = lua < count ? naming_frame(classes, lua) : count;
	size_t len = 0, leaf = count;
	bool inside = false;

	for (size_t i = 0; i < count && lua == count; i++)
		if (is_native(classes[i]))
			leaf = i;
	for (size_t i = 0; i < count; i++) {
		enum view_class class = classes[i];

		if (i == lua && naming < lua && native != FORMAT_NATIVE_NONE)
			ret_steps[len++] = (struct view_step){ VIEW_STARTUP, (uint32_t)naming };
		if (i == leaf) {
			ret_steps[len++] = (struct view_step){ VIEW_OUTSIDE, (uint32_t)i };
		} else if (!is_native(class)) {
			if (is_called(class) && i < lua)
				continue; /* it starts the first Lua function */
			inside = class == VIEW_LUA || (class == VIEW_MARK && inside);
			ret_steps[len++] = (struct view_step){ class == VIEW_NAMELESS ? VIEW_CALLED
										      : VIEW_KEEP,
							       (uint32_t)i };
		} else if (i > lua && shows_native(class, &inside) &&
			   native != FORMAT_NATIVE_NONE) {
			ret_steps[len++] = (struct view_step){ VIEW_KEEP, (uint32_t)i };
		}
	}
	return len;
}

/** Append a module's name without the version of a library and an offset: "libc.so.6" and
 * "libc.so.6+0x1234" are "libc". */
static void add_module(struct format_text *text, const char *module)
{
	const char *version = strstr(module, ".so"),
		   *end = version ? version : strstr(module, "+0x");
	size_t len = end ? (size_t)(end - module) : strlen(module);

	if (len > 2 && module[0] == '[' && module[len - 1] == ']') {
		module++;
		len -= 2;
	}
	format_text_add_line(text, module, len);
}

bool view_step_function(enum view_step_kind kind, const struct format_function *frame,
			struct format_text *text, struct format_function *ret_function)
{
	static const enum format_kind kinds[] = { [VIEW_KEEP] = FORMAT_KIND_NATIVE,
						  [VIEW_STARTUP] = FORMAT_KIND_NATIVE,
						  [VIEW_OUTSIDE] = FORMAT_KIND_PSEUDO,
						  [VIEW_CALLED] = FORMAT_KIND_CFUNC };
	const char *module = module_of(frame), *name = frame->name ? frame->name : "?";
	bool is_library = strstr(module, ".so") || *module == '[';
	struct failure why;

	format_text_clear(text);
	if (kind == VIEW_CALLED) {
		format_text_add_string(text, "[C function: ");
		add_module(text, module);
		format_text_add_string(text, "]");
	} else if (kind == VIEW_OUTSIDE) {
		format_text_add_string(text, !*module || is_library ? "[native" : "[");
		format_text_add_string(text, *module && is_library ? ": " : "");
		add_module(text, module);
		format_text_add_string(text, "]");
	} else if (*module) {
		add_module(text, module);
		if (!is_unnamed(module, name))
			format_text_addf(text, ": %s", name);
	} else {
		format_text_add_string(text, name);
	}
	*ret_function = (struct format_function){ .kind = kinds[kind] };
	if (kind != VIEW_OUTSIDE)
		ret_function->source = frame->source;
	return format_text_take(text, &ret_function->name, &why) == 0;
}
