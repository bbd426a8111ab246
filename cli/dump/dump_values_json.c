/* SPDX-License-Identifier: MIT */
/* How are variables printed as JSON? The keys are an interface: ljdump(1). */
#include "cli/dump/dump_values.h"

#include <inttypes.h>
#include <json.h>
#include <math.h>
#include <string.h>

#include "cli/common/json_keys.h"

/* Add a text of the target, or null. @p flag says whether the text has Lua's escapes. */
static void add_escaped(struct json_object *object, const char *key, const char *flag,
			const char *bytes, size_t len)
{
	struct format_text text = { 0 };
	bool escaped = bytes && dump_needs_escapes(bytes, len);
	struct json_object *string = NULL;

	if (escaped)
		dump_escape(&text, bytes, len);
	else if (bytes)
		format_text_add(&text, bytes, len);
	if (text.bytes && !text.broken)
		string = json_object_new_string_len(text.bytes, (int)text.len);
	json_object_object_add(object, key, string);
	if (flag)
		json_keys_add_flag(object, flag, escaped);
	format_text_deinit(&text);
}

static void add_text(struct json_object *object, const char *key, const char *text)
{
	add_escaped(object, key, NULL, text, text ? strlen(text) : 0);
}

/* JSON has no NaN and no infinities, so they are texts. */
static void add_double(struct json_object *object, const char *key, double number)
{
	char text[40];

	if (isnan(number)) {
		json_keys_add_word(object, key, "nan");
	} else if (isinf(number)) {
		json_keys_add_word(object, key, number < 0 ? "-inf" : "inf");
	} else {
		/* Without a point, readers would take it for an integer, which has no negative
		 * zero. */
		snprintf(text, sizeof(text), number == 0 && signbit(number) ? "-0.0" : "%.17g",
			 number);
		json_object_object_add(object, key, json_object_new_double_s(number, text));
	}
}

static struct json_object *make_value(const struct luastate_value *value);

static const char *cut_word(enum luastate_table_cut cut)
{
	static const char *const words[] = { "no", "cycle", "depth", "entries", "inconsistent" };

	return words[cut];
}

static void add_table(struct json_object *object, const struct luastate_table *table)
{
	struct json_object *entries = json_object_new_array();

	json_keys_add_number(object, "entry_count", table->count);
	json_keys_add_flag(object, "entry_count_is_least", table->is_count_cut);
	json_keys_add_number(object, "array_slots", table->array_slots);
	json_keys_add_number(object, "hash_slots", table->hash_slots);
	json_keys_add_flag(object, "metatable", table->has_metatable);
	json_keys_add_word(object, "truncated", cut_word(table->cut));
	for (size_t i = 0; i < table->entry_count; i++) {
		struct json_object *entry = json_object_new_object();

		json_object_object_add(entry, "key", make_value(&table->keys[i]));
		json_object_object_add(entry, "value", make_value(&table->values[i]));
		json_object_array_add(entries, entry);
	}
	json_object_object_add(object, "entries", entries);
}

static void add_function(struct json_object *object, const struct luastate_value *value)
{
	json_keys_add_word(object, "kind",
			   value->type == LUASTATE_VALUE_FUNCTION     ? "lua"
			   : value->type == LUASTATE_VALUE_C_FUNCTION ? "c"
								      : "built-in");
	add_text(object, "name", value->text);
	if (value->type == LUASTATE_VALUE_FUNCTION) {
		add_text(object, "chunk", value->chunkname);
		json_object_object_add(object, "line", json_object_new_int64(value->firstline));
	} else {
		json_keys_add_address(object, "code", value->code);
	}
}

static void add_cdata(struct json_object *object, const struct luastate_value *value)
{
	char text[32];

	add_text(object, "ctype", value->text);
	json_keys_add_number(object, "bytes", value->size);
	switch (value->cdata_kind) {
	case LUASTATE_CDATA_INTEGER:
		if (value->size < 8) {
			json_object_object_add(object, "value",
					       json_object_new_int64(value->integer));
			break;
		}
		snprintf(text, sizeof(text), "%" PRId64, value->integer);
		json_keys_add_word(object, "value", text);
		break;
	case LUASTATE_CDATA_UNSIGNED:
		snprintf(text, sizeof(text), "%" PRIu64, (uint64_t)value->integer);
		json_keys_add_word(object, "value", text);
		break;
	case LUASTATE_CDATA_BOOLEAN:
		json_keys_add_flag(object, "value", value->boolean);
		break;
	case LUASTATE_CDATA_NUMBER:
		add_double(object, "value", value->number);
		break;
	case LUASTATE_CDATA_POINTER:
		json_keys_add_address(object, "value", (uint64_t)value->integer);
		break;
	case LUASTATE_CDATA_OPAQUE:
		break;
	}
}

static void add_string(struct json_object *object, const struct luastate_value *value)
{
	size_t shown = dump_shown_bytes(value);

	add_escaped(object, "value", "escaped", value->text, shown);
	json_keys_add_number(object, "bytes", value->size);
	json_keys_add_flag(object, "truncated", shown < value->size);
}

static void add_object(struct json_object *object, const struct luastate_value *value)
{
	json_keys_add_address(object, "address", value->address);
	switch (value->type) {
	case LUASTATE_VALUE_TABLE:
		if (value->table)
			add_table(object, value->table);
		break;
	case LUASTATE_VALUE_FUNCTION:
	case LUASTATE_VALUE_C_FUNCTION:
	case LUASTATE_VALUE_BUILTIN:
		add_function(object, value);
		break;
	case LUASTATE_VALUE_COROUTINE:
		json_keys_add_word(object, "status", luastate_coroutine_status_name(value->status));
		break;
	case LUASTATE_VALUE_USERDATA:
		json_keys_add_flag(object, "light", false);
		json_keys_add_number(object, "bytes", value->size);
		json_keys_add_flag(object, "metatable", value->has_metatable);
		add_text(object, "name", value->text);
		break;
	case LUASTATE_VALUE_LIGHTUSERDATA:
		json_keys_add_flag(object, "light", true);
		break;
	case LUASTATE_VALUE_CDATA:
		add_cdata(object, value);
		break;
	default:
		break;
	}
}

/* Tables are nested at most LUASTATE_VALUES_DEPTH_MAX deep. */
static struct json_object *make_value(const struct luastate_value *value)
{
	struct json_object *object = json_object_new_object();

	json_keys_add_word(object, "type", luastate_value_type_name(value->type));
	switch (value->type) {
	case LUASTATE_VALUE_UNAVAILABLE:
	case LUASTATE_VALUE_UNREADABLE:
	case LUASTATE_VALUE_OMITTED:
	case LUASTATE_VALUE_NIL:
		break;
	case LUASTATE_VALUE_BOOLEAN:
		json_keys_add_flag(object, "value", value->boolean);
		break;
	case LUASTATE_VALUE_INTEGER:
		json_object_object_add(object, "value", json_object_new_int64(value->integer));
		break;
	case LUASTATE_VALUE_NUMBER:
		add_double(object, "value", value->number);
		break;
	case LUASTATE_VALUE_STRING:
		add_string(object, value);
		break;
	default:
		add_object(object, value);
	}
	return object;
}

static struct json_object *make_variable(const struct luastate_variable *variable)
{
	struct json_object *object = json_object_new_object();

	add_text(object, "name", variable->name);
	json_keys_add_word(object, "kind", luastate_variable_kind_name(variable->kind));
	json_object_object_add(object, "index", json_object_new_int64(variable->index));
	if (variable->kind == LUASTATE_UPVALUE) {
		json_keys_add_flag(object, "open", variable->is_open);
		json_keys_add_flag(object, "immutable", variable->is_immutable);
	}
	json_object_object_add(object, "value", make_value(&variable->value));
	return object;
}

struct json_object *dump_make_variables(const struct luastate_variables *variables)
{
	struct json_object *object = json_object_new_object(), *list = json_object_new_array();

	json_keys_add_flag(object, "stripped", variables->is_stripped);
	json_keys_add_flag(object, "compiled", variables->is_compiled);
	json_keys_add_flag(object, "between", variables->is_between);
	json_keys_add_flag(object, "all", !variables->is_truncated);
	for (size_t i = 0; i < variables->count; i++)
		json_object_array_add(list, make_variable(&variables->items[i]));
	json_object_object_add(object, "list", list);
	return object;
}
