/* SPDX-License-Identifier: MIT */
/* How are rules such as "self>5%", "func:encode>10%" and "+2%" parsed and checked? */
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attach/array.h"
#include "format/budget.h"
#include "format/diff/compare.h"
#include "format/text.h"
#include "format/text/xml.h"

enum {
	/* Functions named in the reason of one rule. */
	REASONS_MAX = 5,
	RULE_MAX_BYTES = 1024,
};

/** Byte order mark, which some editors put before text. */
#define UTF8_MARK "\xef\xbb\xbf"

/** Bound of the rules in one budget; nobody needs more. */
#define RULES_MAX 1000

enum subject {
	SUBJECT_ANY, /* any function's own or total share */
	SUBJECT_SELF,
	SUBJECT_TOTAL,
	SUBJECT_FUNCTION,
	SUBJECT_GC,
	SUBJECT_COMPILED,
};

struct rule {
	char *text;
	enum subject subject;
	char sign; /* > < for a share, + - for a change */
	double bound;
	char *name; /* SUBJECT_FUNCTION: a pattern */
};

struct format_budget {
	struct rule *rules;
	struct format_verdict *verdicts;
	size_t count, rule_room, verdict_room;
};

struct format_budget *format_budget_create(void)
{
	return calloc(1, sizeof(struct format_budget));
}

void format_budget_destroy(struct format_budget *budget)
{
	if (!budget)
		return;
	for (size_t i = 0; i < budget->count; i++) {
		free(budget->rules[i].text);
		free(budget->rules[i].name);
		free(budget->verdicts[i].reason);
	}
	free(budget->rules);
	free(budget->verdicts);
	free(budget);
}

bool format_budget_needs_base(const struct format_budget *budget)
{
	for (size_t i = 0; i < budget->count; i++)
		if (strchr("+-", budget->rules[i].sign))
			return true;
	return false;
}

/* ---- Rules ------------------------------------------------------------------------------ */

static bool parse_bound(const char *text, double *ret_bound)
{
	size_t digits = strspn(text, "0123456789.");
	char *end;

	if (digits == 0 || digits > 20)
		return false;
	*ret_bound = strtod(text, &end) / 100;
	if (end != text + digits)
		return false;
	while (*end == ' ')
		end++;
	return end[0] == '%' && end[1] == '\0' && *ret_bound <= 1;
}

/** The sign is the last one that a percentage follows, because names may contain any
 * character. */
static char *find_sign(char *text, double *ret_bound)
{
	for (char *at = text + strlen(text); at-- > text;) {
		char *number = at + 1;

		if (!strchr("<>+-", *at))
			continue;
		number += strspn(number, " ");
		if (parse_bound(number, ret_bound))
			return at;
	}
	return NULL;
}

static bool parse_subject(char *text, struct rule *rule)
{
	static const struct {
		const char *word;
		enum subject subject;
	} words[] = {
		{ "", SUBJECT_ANY },  { "self", SUBJECT_SELF },		{ "total", SUBJECT_TOTAL },
		{ "gc", SUBJECT_GC }, { "compiled", SUBJECT_COMPILED },
	};
	size_t len = strlen(text);

	while (len > 0 && text[len - 1] == ' ')
		text[--len] = '\0';
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(text, words[i].word) == 0) {
			rule->subject = words[i].subject;
			/* Other signs make no sense for any function: some function is
			 * always below a bound. */
			return rule->subject != SUBJECT_ANY
				       ? rule->subject >= SUBJECT_GC || strchr(">+", rule->sign)
				       : rule->sign == '+';
		}
	if (strncmp(text, "func:", 5) != 0 || text[5] == '\0')
		return false;
	rule->subject = SUBJECT_FUNCTION;
	rule->name = strdup(text + 5);
	return true;
}

static int grow(struct format_budget *budget)
{
	return ARRAY_RESERVE(budget->rules, budget->rule_room, budget->count + 1) &&
			       ARRAY_RESERVE(budget->verdicts, budget->verdict_room,
					     budget->count + 1)
		       ? 0
		       : -1;
}

static int invalid(uint64_t at, const char *what, struct failure *why)
{
	return failure_set(why, FAILURE_INVALID, 0, 0, at, what);
}

/** @param text Without blanks around it. @param at Line number for failures. */
static int add_rule(struct format_budget *budget, const char *text, uint64_t at,
		    struct failure *why)
{
	struct rule rule = { .text = strdup(text) };
	char *words = strdup(text), *sign;
	bool good = false;

	if (budget->count == RULES_MAX) {
		free(words);
		free(rule.text);
		return failure_set(why, FAILURE_LIMIT, 0, 0, 0, "keep more rules");
	}
	if (words && rule.text && grow(budget) == 0) {
		sign = find_sign(words, &rule.bound);
		if (sign) {
			rule.sign = *sign;
			*sign = '\0';
			good = parse_subject(words, &rule);
		}
	} else {
		free(words);
		free(rule.text);
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep a rule");
	}
	free(words);
	if (!good || (rule.subject == SUBJECT_FUNCTION && !rule.name)) {
		free(rule.text);
		free(rule.name);
		return invalid(at, "not a rule such as 'self>5%', 'func:NAME>10%' or '+2%'", why);
	}
	format_clean_text(rule.text, strlen(rule.text));
	budget->verdicts[budget->count] = (struct format_verdict){ .rule = rule.text };
	budget->rules[budget->count++] = rule;
	return 0;
}

/** Remove blanks at both ends. @return The new start. */
static char *trim(char *text)
{
	size_t len;

	text += strspn(text, " \t\r\n");
	len = strlen(text);
	while (len > 0 && strchr(" \t\r\n", text[len - 1]))
		text[--len] = '\0';
	return text;
}

int format_budget_add(struct format_budget *budget, const char *text, struct failure *why)
{
	char *copy = strdup(text);
	int result;

	if (!copy)
		return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "keep a rule");
	result = add_rule(budget, trim(copy), 0, why);
	free(copy);
	return result;
}

/** Read one line of a file. @param len Bytes read, including zero bytes. */
static int read_line(struct format_budget *budget, char *line, size_t len, uint64_t number,
		     struct failure *why)
{
	char *text = line, *comment;

	if (strlen(line) != len)
		return invalid(number, "a zero byte", why);
	if (len > RULE_MAX_BYTES)
		return invalid(number, "rule too long", why);
	if (number == 1 && strncmp(text, UTF8_MARK, strlen(UTF8_MARK)) == 0)
		text += strlen(UTF8_MARK);
	comment = strchr(text, '#');
	if (comment)
		*comment = '\0';
	text = trim(text);
	return *text ? add_rule(budget, text, number, why) : 0;
}

int format_budget_read(struct format_budget *budget, FILE *file, struct failure *why)
{
	uint64_t number = 0;
	size_t size = 0;
	char *line = NULL;
	ssize_t len;
	int result = 0;

	while (result == 0 && (len = getline(&line, &size, file)) >= 0)
		result = read_line(budget, line, (size_t)len, ++number, why);
	if (result == 0 && ferror(file))
		result = failure_set_errno(why, errno ? errno : EIO, 0, "read the rules");
	free(line);
	return result;
}

/* ---- Verdicts --------------------------------------------------------------------------- */

/** Data of a judgement. */
struct judging {
	const struct compare *compare;
	const struct format_profile *profiles[2]; /* [0] NULL: no base */
	const struct rule *rule;
	double tail;	   /* as compare_tail() returns it */
	bool is_unmatched; /* no function has the rule's name */
	bool counts;	   /* only count the intervals to compute */
	uint32_t candidates;
	struct format_text reason;
	unsigned named, more; /* functions in the reason, and omitted ones */
};

/** How far a share or a change is beyond the bound. */
static double excess_of(const struct rule *rule, double value)
{
	switch (rule->sign) {
	case '>':
	case '+':
		return value - rule->bound;
	case '<':
		return rule->bound - value;
	default:
		return -rule->bound - value;
	}
}

static void explain(struct judging *judging, const char *who, const char *what, double share,
		    struct compare_range range)
{
	struct format_text *reason = &judging->reason;

	if (judging->named == REASONS_MAX) {
		judging->more++;
		return;
	}
	format_text_addf(reason, "%s%s %s %.2f %%", judging->named++ ? "; " : "", who, what,
			 100 * share);
	if (strchr("<>", judging->rule->sign))
		format_text_addf(reason, " (%.2f to %.2f)", 100 * range.low, 100 * range.high);
	else
		format_text_addf(reason, ", %+.2f (%+.2f to %+.2f)", 100 * range.value,
				 100 * range.low, 100 * range.high);
}

/** @return Whether the count breaks the rule. While counting: whether it may break the rule. */
static bool judge_count(struct judging *judging, const char *who, const char *what,
			const uint64_t parts[2])
{
	const uint64_t *wholes = judging->compare->samples;
	const double *effective = judging->compare->effective;
	const struct rule *rule = judging->rule;
	double shares[2] = { wholes[0] ? (double)parts[0] / (double)wholes[0] : 0,
			     wholes[1] ? (double)parts[1] / (double)wholes[1] : 0 };
	bool is_share = strchr("<>", rule->sign) != NULL;
	bool upwards = strchr(">+", rule->sign) != NULL;
	struct compare_range range;

	/* If the whole interval is beyond the bound, the measured value is too. */
	if (excess_of(rule, is_share ? shares[1] : shares[1] - shares[0]) <= 0)
		return false;
	judging->candidates++;
	if (judging->counts)
		return true;
	range = compare_share(parts[1], wholes[1], effective[1], judging->tail);
	if (!is_share)
		range = compare_difference(
			compare_share(parts[0], wholes[0], effective[0], judging->tail), range);
	if (excess_of(rule, upwards ? range.low : range.high) <= 0)
		return false;
	explain(judging, who, what, shares[1], range);
	return true;
}

/** A pattern matches the whole label, or only its name. */
static bool fits(const char *pattern, const char *text)
{
	const char *location = strstr(text, " (");
	char name[RULE_MAX_BYTES];

	if (fnmatch(pattern, text, 0) == 0 || strcmp(pattern, text) == 0)
		return true;
	if (!location || (size_t)(location - text) >= sizeof(name))
		return false;
	memcpy(name, text, (size_t)(location - text));
	name[location - text] = '\0';
	return fnmatch(pattern, name, 0) == 0;
}

static void judge_functions(struct judging *judging)
{
	const struct rule *rule = judging->rule;
	bool self = rule->subject == SUBJECT_SELF || rule->subject == SUBJECT_ANY;
	bool total = rule->subject != SUBJECT_SELF;

	judging->is_unmatched = rule->subject == SUBJECT_FUNCTION;
	for (uint32_t i = 0; i < judging->compare->count; i++) {
		const struct compare_row *row = &judging->compare->rows[i];

		if (rule->subject == SUBJECT_FUNCTION && !fits(rule->name, row->text))
			continue;
		judging->is_unmatched = false;
		bool has_reason = self && judge_count(judging, row->text, "itself has", row->self);

		/* One reason per function is enough. */
		if (total && (!has_reason || judging->counts))
			judge_count(judging, row->text, "has in total", row->total);
	}
	if (judging->is_unmatched)
		judge_count(judging, "no function of that name:", "it has",
			    (const uint64_t[]){ 0, 0 });
}

static uint64_t in_state(const struct format_profile *profile, enum format_state state)
{
	return profile ? profile->states[state] : 0;
}

static bool tells_states(const struct format_profile *profile)
{
	uint64_t all = 0;

	for (int i = 0; profile && i < FORMAT_STATE_COUNT; i++)
		all += profile->states[i];
	return !profile || all == profile->samples;
}

static int judge_state(struct judging *judging, const char *what, enum format_state state,
		       struct failure *why)
{
	const uint64_t parts[2] = { in_state(judging->profiles[0], state),
				    in_state(judging->profiles[1], state) };

	if (!tells_states(judging->profiles[0]) || !tells_states(judging->profiles[1]))
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0,
				   "check a rule about VM states, which some samples lack");
	judge_count(judging, what, "has", parts);
	return 0;
}

static int judge_rule(struct judging *judging, const struct rule *rule, struct failure *why)
{
	judging->rule = rule;
	judging->named = judging->more = 0;
	judging->is_unmatched = false;
	format_text_clear(&judging->reason);
	switch (rule->subject) {
	case SUBJECT_GC:
		return judge_state(judging, "the garbage collector", FORMAT_STATE_GC, why);
	case SUBJECT_COMPILED:
		return judge_state(judging, "compiled code", FORMAT_STATE_TRACE, why);
	default:
		judge_functions(judging);
		return 0;
	}
}

/** Only a value measured beyond a bound can break it. A true value at the bound is measured
 * beyond it half of the time. So each candidate gets the error of both ends of an interval,
 * although only one end counts. */
static int choose_tail(const struct format_budget *budget, struct judging *judging,
		       struct failure *why)
{
	judging->counts = true;
	for (size_t i = 0; i < budget->count; i++)
		if (judge_rule(judging, &budget->rules[i], why))
			return -1;
	judging->counts = false;
	judging->tail = compare_tail(judging->candidates);
	return 0;
}

static int judge_all(struct format_budget *budget, struct judging *judging, size_t *ret_failed,
		     struct failure *why)
{
	size_t all_failed = 0;

	if (choose_tail(budget, judging, why))
		return -1;
	for (size_t i = 0; i < budget->count; i++) {
		struct format_verdict *verdict = &budget->verdicts[i];
		const char *reason;

		if (judge_rule(judging, &budget->rules[i], why))
			return -1;
		if (judging->more)
			format_text_addf(&judging->reason, "; and %u more", judging->more);
		if (format_text_take(&judging->reason, &reason, why))
			return -1;
		verdict->failed = judging->named > 0;
		verdict->is_unmatched = judging->is_unmatched;
		all_failed += verdict->failed;
		free(verdict->reason);
		verdict->reason = strdup(reason);
		if (!verdict->reason)
			return failure_set(why, FAILURE_NO_MEMORY, 0, 0, 0, "judge the profile");
	}
	*ret_failed = all_failed;
	return 0;
}

int format_budget_judge(struct format_budget *budget, const struct format_profile *base,
			const struct format_profile *profile, enum format_lines lines,
			size_t *ret_failed, struct failure *why)
{
	struct judging judging = { .profiles = { base, profile } };
	struct compare compare;
	int result;

	if (format_profile_kind(profile) != FORMAT_STREAM_SYSPROF ||
	    (base && format_profile_kind(base) != FORMAT_STREAM_SYSPROF))
		return failure_set(why, FAILURE_NOT_FOUND, 0, 0, 0,
				   "check the rules on a memory profile");
	/* Without a base, no rule is about changes. */
	if (compare_init(&compare, base ? base : profile, profile,
			 lines ? lines : FORMAT_LINES_FUNCTION, why))
		return -1;
	judging.compare = &compare;
	result = judge_all(budget, &judging, ret_failed, why);
	format_text_deinit(&judging.reason);
	compare_deinit(&compare);
	return result;
}

const struct format_verdict *format_budget_verdicts(const struct format_budget *budget,
						    size_t *ret_count)
{
	*ret_count = budget->count;
	return budget->verdicts;
}

/* ---- JUnit ------------------------------------------------------------------------------ */

static void print_verdict(const struct format_verdict *verdict, FILE *file)
{
	fputs("<testcase classname=\"ljprof\" name=\"", file);
	xml_print(file, verdict->rule, SIZE_MAX);
	fputs(verdict->failed ? "\"><failure message=\"" : "\"/>\n", file);
	if (!verdict->failed)
		return;
	xml_print(file, verdict->reason, SIZE_MAX);
	fputs("\"/></testcase>\n", file);
}

void format_budget_print_junit(const struct format_budget *budget, const char *name, FILE *file)
{
	size_t failed = 0;

	for (size_t i = 0; i < budget->count; i++)
		failed += budget->verdicts[i].failed;
	fprintf(file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
		      "<testsuite name=\"");
	xml_print(file, name, SIZE_MAX);
	fprintf(file, "\" tests=\"%zu\" failures=\"%zu\">\n", budget->count, failed);
	for (size_t i = 0; i < budget->count; i++)
		print_verdict(&budget->verdicts[i], file);
	fputs("</testsuite>\n</testsuites>\n", file);
}
