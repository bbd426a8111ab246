/* SPDX-License-Identifier: MIT */
/*
 * Which type and value does a cdata object have?
 *
 * Its number gives the type in the VM's table of C types. Only numbers and similar types have a
 * value to show.
 *
 *   CTState   tab 0 (a pointer), top 8, sizetab 12, L 16, g 24
 *   CType     info 0, size 4, sib 8, next 10, name 12 or, with GC64, 16
 *
 * A type's text is the one that tostring() shows. It is built from the inside out: the part before
 * the name grows to the left, the part after it to the right.
 *
 * The offsets are the same in all builds since 2017. Source: LuaJIT v2.1 src/lj_ctype.h (CTState,
 * CType, CT_*, CTF_*), src/lj_ctype.c (lj_ctype_repr), src/lj_obj.h (GCcdata, GCcdataVar).
 */
#include "luastate/values/values.h"

#include <inttypes.h>
#include <stdio.h>

#include "luastate/layout/object.h"

enum {
	STATE_TOP = 8,
	STATE_G = 24,
	STATE_BYTES = 32,
	TYPES_MAX = 65536, /* CTID_MAX */
	TYPE_BYTES_MAX = 24,
	/* Maximum nesting of types. Deeper types are circular, or no program has them. */
	TYPE_STEPS = 64,
	/* Types with lower numbers are LuaJIT's own. */
	PREDEFINED = 40,
	HALF = VALUES_TEXT_MAX / 2,
	VARIABLE_SIZE = 0x80, /* cdataisv(), in GChead.marked */
	VARIABLE_LEN_BEFORE = 4,
	ATTRIBUTE_QUALIFIER = 1, /* CTA_QUAL */
	BITS_PER_BYTE = 8,
};

enum ctype_kind {
	CT_NUM,
	CT_STRUCT,
	CT_PTR,
	CT_ARRAY,
	CT_VOID,
	CT_ENUM,
	CT_FUNC,
	CT_TYPEDEF,
	CT_ATTRIB,
	CT_EXTERN = 12,
};

#define CTF_BOOL       0x08000000u
#define CTF_FP	       0x04000000u
#define CTF_CONST      0x02000000u
#define CTF_VOLATILE   0x01000000u
#define CTF_UNSIGNED   0x00800000u
#define CTF_VLA	       0x00100000u
#define CTF_REF	       0x00800000u
#define CTF_VECTOR     0x08000000u
#define CTF_COMPLEX    0x04000000u
#define CTF_UNION      0x00800000u
#define CTSIZE_INVALID 0xffffffffu

struct ctype {
	uint32_t id, info, size;
	uint64_t name;
};

static enum ctype_kind kind_of(const struct ctype *type)
{
	return type->info >> 28;
}

static uint32_t child_of(const struct ctype *type)
{
	return type->info & 0xffff;
}

/* ---- The table of types ----------------------------------------------------------------- */

static void find_ctypes(struct values *values)
{
	const struct luastate_layout *layout = values->layout;
	uint8_t bytes[STATE_BYTES], ref[8];
	uint64_t address;

	values->ctypes.looked_for = true;
	if (layout->global_State_ctype_state == LAYOUT_ABSENT ||
	    !values_read(values, values->vm->G + (uint64_t)layout->global_State_ctype_state, ref,
			 (size_t)layout->ref_size))
		return;
	address = state_ref(layout, ref, 0);
	/* The state must point back to its VM. */
	if (!values_read(values, address, bytes, sizeof(bytes)) ||
	    state_u64(bytes, STATE_G) != values->vm->G || !state_is_pointer(state_u64(bytes, 0)) ||
	    state_u32(bytes, STATE_TOP) > TYPES_MAX)
		return;
	values->ctypes.table = state_u64(bytes, 0);
	values->ctypes.top = state_u32(bytes, STATE_TOP);
}

static bool get_type(struct values *values, uint32_t id, struct ctype *ret_type)
{
	const struct luastate_layout *layout = values->layout;
	uint32_t size = layout->gc64 ? 24 : 16;
	uint8_t bytes[TYPE_BYTES_MAX];

	if (!values->ctypes.looked_for)
		find_ctypes(values);
	if (!values->ctypes.table || id == 0 || id >= values->ctypes.top ||
	    !values_read(values, values->ctypes.table + (uint64_t)id * size, bytes, size))
		return false;
	*ret_type = (struct ctype){ .id = id,
				    .info = state_u32(bytes, 0),
				    .size = state_u32(bytes, 4),
				    .name = state_ref(layout, bytes, layout->gc64 ? 16 : 12) };
	return true;
}

/* ---- Texts ------------------------------------------------------------------------------ */

/** A type's text during construction. If it does not fit, the whole text is dropped. */
struct text {
	char bytes[VALUES_TEXT_MAX];
	unsigned start, end;
	bool needs_space, full;
};

static void prepend_char(struct text *text, char c)
{
	if (text->start == 0)
		text->full = true;
	else
		text->bytes[--text->start] = c;
}

static void prepend(struct text *text, const char *word)
{
	if (text->needs_space)
		prepend_char(text, ' ');
	for (size_t len = strlen(word); len && !text->full; len--)
		prepend_char(text, word[len - 1]);
	text->needs_space = true;
}

static void append(struct text *text, const char *word)
{
	for (; *word; word++) {
		if (text->end + 1 >= VALUES_TEXT_MAX)
			text->full = true;
		else
			text->bytes[text->end++] = *word;
	}
}

static void prepend_qualifiers(struct text *text, uint32_t info)
{
	if (info & CTF_VOLATILE)
		prepend(text, "volatile");
	if (info & CTF_CONST)
		prepend(text, "const");
}

/* Adds "struct name", or the type's number if it has no name. */
static void prepend_named(struct values *values, struct text *text, const struct ctype *type,
			  const char *word)
{
	char name[HALF];

	if (!type->name || !values_read_text(values, type->name, name, sizeof(name)))
		snprintf(name, sizeof(name), "%u", type->id);
	prepend(text, name);
	prepend(text, word);
}

/* The type char is unsigned on AArch64. */
static const char *char_name(const struct luastate_layout *layout, const struct ctype *type)
{
	bool is_plain_unsigned = strcmp(layout->arch, "arm64") == 0;
	bool is_unsigned = type->info & CTF_UNSIGNED;

	return is_unsigned == is_plain_unsigned ? "char"
	       : is_unsigned			? "unsigned char"
						: "signed char";
}

static void prepend_number(const struct luastate_layout *layout, struct text *text,
			   const struct ctype *type)
{
	char word[24];

	if (type->info & CTF_BOOL) {
		prepend(text, "bool");
	} else if (type->info & CTF_FP) {
		prepend(text, type->size == 8	? "double"
			      : type->size == 4 ? "float"
						: "long double");
	} else if (type->size == 1) {
		prepend(text, char_name(layout, type));
	} else if (type->size < 8) {
		prepend(text, type->size == 4 ? "int" : "short");
		if (type->info & CTF_UNSIGNED)
			prepend(text, "unsigned");
	} else {
		snprintf(word, sizeof(word), "%sint%" PRIu32 "_t",
			 type->info & CTF_UNSIGNED ? "u" : "", type->size * BITS_PER_BYTE);
		prepend(text, word);
	}
}

static void parenthesise(struct text *text, bool *pointer_to)
{
	text->needs_space = true;
	if (!*pointer_to)
		return;
	*pointer_to = false;
	prepend_char(text, '(');
	append(text, ")");
}

/* Add an array's dimension; the type of its elements comes next. */
static void add_array(struct values *values, struct text *text, const struct ctype *type,
		      bool *pointer_to)
{
	struct ctype element;
	char word[24] = "[]";

	parenthesise(text, pointer_to);
	if (type->size == CTSIZE_INVALID)
		snprintf(word, sizeof(word), type->info & CTF_VLA ? "[?]" : "[]");
	else if (get_type(values, child_of(type), &element))
		snprintf(word, sizeof(word), "[%u]", element.size ? type->size / element.size : 0);
	append(text, word);
}

static void add_pointer(struct text *text, const struct ctype *type, uint32_t qualifiers)
{
	if (type->info & CTF_REF) {
		prepend_char(text, '&');
	} else {
		prepend_qualifiers(text, qualifiers | type->info);
		prepend_char(text, '*');
	}
	text->needs_space = true;
}

/** State on the way to the innermost type. */
struct way {
	uint32_t qualifiers;
	bool pointer_to;
};

/* Add one of the nested types. @return false at the innermost. */
static bool add_type(struct values *values, struct text *text, const struct ctype *type,
		     struct way *way)
{
	char word[48];

	switch (kind_of(type)) {
	case CT_NUM:
		prepend_number(values->layout, text, type);
		break;
	case CT_VOID:
		prepend(text, "void");
		break;
	case CT_STRUCT:
		prepend_named(values, text, type, type->info & CTF_UNION ? "union" : "struct");
		prepend_qualifiers(text, way->qualifiers);
		return false;
	case CT_ENUM:
		prepend_named(values, text, type, "enum");
		prepend_qualifiers(text, way->qualifiers);
		return false;
	case CT_ATTRIB:
		if ((type->info >> 16 & 255) == ATTRIBUTE_QUALIFIER)
			way->qualifiers |= type->size;
		return true;
	case CT_PTR:
		add_pointer(text, type, way->qualifiers);
		way->qualifiers = 0;
		way->pointer_to = true;
		return true;
	case CT_ARRAY:
		if (type->info & CTF_COMPLEX) {
			prepend(text, type->size == 8 ? "complex float" : "complex");
			return false;
		}
		if (!(type->info & CTF_VECTOR)) {
			add_array(values, text, type, &way->pointer_to);
			return true;
		}
		snprintf(word, sizeof(word), "__attribute__((vector_size(%u)))", type->size);
		prepend(text, word);
		return true;
	case CT_FUNC:
		parenthesise(text, &way->pointer_to);
		append(text, "()");
		return true;
	case CT_TYPEDEF:
	case CT_EXTERN:
		return true;
	default:
		text->full = true;
		return false;
	}
	prepend_qualifiers(text, way->qualifiers | type->info);
	return false;
}

/* @return NULL if the type is unknown. */
static const char *describe(struct values *values, uint32_t id)
{
	struct text text = { .start = HALF, .end = HALF };
	struct way way = { 0 };
	struct ctype type;
	bool more = true;

	for (unsigned steps = 0; more; steps++) {
		if (steps == TYPE_STEPS || !get_type(values, id, &type))
			return NULL;
		more = add_type(values, &text, &type, &way);
		id = child_of(&type);
	}
	if (text.full)
		return NULL;
	text.bytes[text.end] = '\0';
	return values_copy_text(values, text.bytes + text.start);
}

/* ---- Values ----------------------------------------------------------------------------- */

/* Find the type without attributes; for an enumeration, its integer type. */
static bool resolve(struct values *values, uint32_t id, struct ctype *ret_type)
{
	for (unsigned steps = 0; steps < TYPE_STEPS; steps++) {
		enum ctype_kind kind;

		if (!get_type(values, id, ret_type))
			return false;
		kind = kind_of(ret_type);
		if (kind != CT_ATTRIB && kind != CT_TYPEDEF && kind != CT_ENUM)
			return true;
		id = child_of(ret_type);
	}
	return false;
}

static void show_integer(const uint8_t *bytes, const struct ctype *type,
			 struct luastate_value *ret_value)
{
	unsigned shift = 64 - BITS_PER_BYTE * type->size;
	uint64_t raw;

	memcpy(&raw, bytes, sizeof(raw));
	ret_value->cdata_kind = LUASTATE_CDATA_INTEGER;
	if (type->info & CTF_BOOL) {
		ret_value->cdata_kind = LUASTATE_CDATA_BOOLEAN;
		ret_value->boolean = bytes[0] != 0;
	} else if (type->info & CTF_UNSIGNED) {
		ret_value->integer = (int64_t)(raw << shift >> shift);
		if (type->size == 8)
			ret_value->cdata_kind = LUASTATE_CDATA_UNSIGNED;
	} else {
		ret_value->integer = (int64_t)(raw << shift) >> shift;
	}
}

static void show_number(const uint8_t *bytes, const struct ctype *type,
			struct luastate_value *ret_value)
{
	float narrow;

	if (!(type->info & CTF_FP)) {
		show_integer(bytes, type, ret_value);
		return;
	}
	ret_value->cdata_kind = LUASTATE_CDATA_NUMBER;
	memcpy(&narrow, bytes, sizeof(narrow));
	memcpy(&ret_value->number, bytes, sizeof(ret_value->number));
	if (type->size == 4)
		ret_value->number = (double)narrow;
}

static bool is_machine_size(uint32_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

static void show_value(struct values *values, uint64_t data, const struct ctype *type,
		       struct luastate_value *ret_value)
{
	uint8_t bytes[8] = { 0 };
	enum ctype_kind kind = kind_of(type);
	uint64_t pointer;

	if (kind == CT_NUM && is_machine_size(type->size)) {
		if (!(type->info & CTF_FP && type->size < 4) &&
		    values_read(values, data, bytes, type->size))
			show_number(bytes, type, ret_value);
	} else if ((kind == CT_PTR && type->size == 8) || kind == CT_FUNC) {
		if (!values_read(values, data, bytes, sizeof(bytes)))
			return;
		memcpy(&pointer, bytes, sizeof(pointer));
		ret_value->cdata_kind = LUASTATE_CDATA_POINTER;
		ret_value->integer = (int64_t)pointer;
	}
}

/* Show the result of ffi.typeof(): an unnamed enumeration of LuaJIT, whose value is a type. */
static bool show_ctype(struct values *values, uint64_t data, uint32_t id,
		       struct luastate_value *ret_value)
{
	struct ctype type;
	const char *text;
	char word[VALUES_TEXT_MAX];
	uint32_t shown;

	if (id >= PREDEFINED || !get_type(values, id, &type) || kind_of(&type) != CT_ENUM ||
	    type.name || !values_read(values, data, &shown, sizeof(shown)))
		return false;
	text = describe(values, shown);
	snprintf(word, sizeof(word), "ctype<%s>", text ? text : "?");
	ret_value->text = values_copy_text(values, word);
	return true;
}

/* An object of variable size has its size before its head. */
static uint64_t size_of(struct values *values, uint64_t address, const uint8_t *head,
			const struct ctype *type)
{
	uint32_t len;

	if (head[values->layout->GCobj_gct - 1] & VARIABLE_SIZE)
		return values_read(values, address - VARIABLE_LEN_BEFORE, &len, sizeof(len)) ? len
											     : 0;
	if (kind_of(type) == CT_FUNC)
		return 8;
	return type->size == CTSIZE_INVALID ? 0 : type->size;
}

void values_decode_cdata(struct values *values, uint64_t address, struct luastate_value *ret_value)
{
	const struct luastate_layout *layout = values->layout;
	uint64_t data = address + (uint64_t)layout->GCcdata_sizeof;
	uint8_t bytes[STATE_OBJECT_MAX];
	struct ctype type;
	uint16_t id;

	if (!values_read_object(values, address, layout->tag_cdata, bytes,
				layout->GCcdata_sizeof)) {
		ret_value->type = LUASTATE_VALUE_UNREADABLE;
		return;
	}
	memcpy(&id, bytes + layout->GCcdata_ctypeid, sizeof(id));
	ret_value->type = LUASTATE_VALUE_CDATA;
	ret_value->address = data;
	if (!resolve(values, id, &type))
		return;
	ret_value->size = size_of(values, address, bytes, &type);
	if (show_ctype(values, data, id, ret_value))
		return;
	ret_value->text = describe(values, id);
	if (ret_value->text)
		show_value(values, data, &type, ret_value);
}
