/* SPDX-License-Identifier: MIT */
/* How are chains written, one per line with its count? */
#include <inttypes.h>

#include "format/formats/reports.h"
#include "format/report/call_tree.h"

/** Print a label, which is one line already. It must be neither empty nor contain the separator. */
static void print_label(const char *text, FILE *file)
{
	if (!*text)
		putc('?', file);
	for (; *text; text++)
		putc(*text == ';' ? ',' : *text, file);
}

static int folded_print(const struct format_profile *profile,
			const struct format_report_options *options, FILE *file,
			struct failure *why)
{
	enum format_lines lines = options->lines ? options->lines : FORMAT_LINES_LINE;
	struct call_tree call_tree;

	if (call_tree_need_chains(profile, why) ||
	    call_tree_init_as(&call_tree, profile, lines, options, why))
		return -1;
	for (uint32_t i = 0; i < call_tree.chain_count; i++) {
		const struct call_tree_chain *chain = &call_tree.chains[i];

		for (uint32_t j = 0; j < chain->len; j++) {
			if (j > 0)
				putc(';', file);
			print_label(call_tree.labels[chain->labels[j]].text, file);
		}
		fprintf(file, " %" PRIu64 "\n", chain->count);
	}
	call_tree_deinit(&call_tree);
	return 0;
}

const struct format_report_ops format_report_folded = {
	.name = "folded",
	.description = "one line per call chain with its count, as flame graph tools read it",
	.print = folded_print,
};
