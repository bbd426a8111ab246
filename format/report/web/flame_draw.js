/* SPDX-License-Identifier: MIT */
/* Which boxes are wide enough to show, where are they, and which colour do they have? */
(function (flame) {
	"use strict";
	const ROW = 18, INSET = 3, LEAST_WIDTH = 1, LEAST_CHARS = 3;
	const PLAIN = [0xe8, 0xe8, 0xec], GAIN = [0xf2, 0x60, 0x4c], LOSS = [0x5a, 0x92, 0xf5];
	/* CSS classes by kind number, and the kinds' names. */
	const CLASSES = ["native", "lua", "builtin", "cfunc", "trace", "pseudo", "process", "vm"];
	const KINDS = ["native", "Lua", "built-in function", "C function", "trace", "activity", "process", "LuaJIT"];

	flame.ROW = ROW;

	flame.readPalette = function () {
		const style = getComputedStyle(document.documentElement), palette = {};
		CLASSES.concat("all", "compiled", "narrow", "match", "ground", "ink", "faint", "focus",
			       "accent", "line", "box-ink").forEach(function (name) {
			palette[name] = style.getPropertyValue("--" + name).trim();
		});
		return palette;
	};

	flame.kindText = function (row) {
		return (KINDS[row[1]] || "") +
			(row[1] === 4 || !row[2] ? "" : row[2] === 2 ? ", compiled (approximate)" : ", compiled");
	};

	flame.colourClass = function (row) {
		return row[2] && row[1] !== 4 ? "compiled" : CLASSES[row[1]] || "all";
	};

	/* Legend of the kinds in a profile: [class, text]. */
	flame.legend = function (functions) {
		const seen = new Map();
		functions.forEach(function (row) {
			const name = flame.colourClass(row);
			seen.set(name, name === "compiled" ? "Lua, compiled" : KINDS[row[1]]);
		});
		return CLASSES.concat("compiled").filter(function (name) { return seen.has(name); })
			.map(function (name) { return [name, seen.get(name)]; });
	};

	/* Red gained, blue lost. @param change From -1 for the largest loss to 1. */
	flame.changeColour = function (change) {
		/* The square root makes small changes visible. */
		const strength = Math.sqrt(Math.min(Math.abs(change), 1));
		return "#" + PLAIN.map(function (from, i) {
			const to = (change > 0 ? GAIN : LOSS)[i];
			return Math.trunc(from + strength * (to - from)).toString(16).padStart(2, "0");
		}).join("");
	};

	flame.boxColour = function (model, palette, box) {
		if (model.sides === 2)
			return flame.changeColour(model.largest ?
				flame.change(model, box.values) / model.largest : 0);
		return palette[box.fn < 0 ? "all" : flame.colourClass(model.functions[box.fn])];
	};

	/* ---- Places ---------------------------------------------------------------------------- */

	/* Rows of rectangles, the root's row first: the callers of the zoomed box at full width,
	 * then the zoomed box and all wide enough boxes below it. Narrow neighbours become one
	 * rectangle without a box. */
	flame.lay = function (zoom, width) {
		const rows = [], by = zoom.tree.by;
		const scale = zoom.values[by] ? width / zoom.values[by] : 0;
		for (let box = zoom; box; box = box.parent)
			rows.push([{ box: box, x: 0, width: width, above: box !== zoom }]);
		rows.reverse();
		for (let row = rows[rows.length - 1]; row.length;) {
			const next = [];
			for (const rect of row)
				if (rect.box)
					layChildren(rect.box, zoom, scale, next);
			if (next.length)
				rows.push(next);
			row = next;
		}
		return rows;
	};

	function layChildren(box, zoom, scale, row) {
		const by = box.tree.by;
		let narrow = null;
		for (const child of flame.expand(box)) {
			const x = (child.start - zoom.start) * scale, width = child.values[by] * scale;
			if (width >= LEAST_WIDTH) {
				row.push({ box: child, x: x, width: width, above: false });
				narrow = null;
				continue;
			}
			if (!narrow) {
				narrow = { box: null, of: box, x: x, width: 0, count: 0, value: 0 };
				row.push(narrow);
			}
			narrow.width += width;
			narrow.count++;
			narrow.value += child.values[by];
		}
	}

	/* Place the halves of a view above (-1) or below (1) their common row.
	 * @return Number of rows, and the row of the roots. */
	flame.arrange = function (halves, width, rowsShown) {
		let up = 0, down = 0;
		for (const half of halves) {
			half.rows = flame.lay(half.zoom, width);
			if (half.direction < 0)
				up = Math.max(up, half.rows.length - 1);
			else
				down = Math.max(down, half.rows.length - 1);
		}
		/* A flame graph begins at the bottom. */
		if (halves.length === 1 && halves[0].direction < 0)
			up = Math.max(up, rowsShown - 1);
		return { rows: up + down + 1, root: up };
	};

	/* The rectangle at x in a row of the picture. */
	flame.find = function (halves, root, row, x) {
		for (const half of halves) {
			const rects = half.rows[(row - root) * half.direction];
			const rect = rects && rects.find(function (r) { return r.x <= x && x < r.x + r.width; });
			if (rect)
				return rect;
		}
		return null;
	};

	/* ---- Drawing --------------------------------------------------------------------------- */

	flame.fitCanvas = function (canvas, width, height) {
		const ratio = window.devicePixelRatio || 1, context = canvas.getContext("2d");
		canvas.width = Math.max(1, Math.round(width * ratio));
		canvas.height = Math.max(1, Math.round(height * ratio));
		canvas.style.width = width + "px";
		canvas.style.height = height + "px";
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		return context;
	};

	function fit(name, width, charWidth) {
		const chars = Math.floor((width - 2 * INSET) / charWidth);
		if (chars < LEAST_CHARS)
			return "";
		if (name.length <= chars)
			return name;
		/* Cut whole characters. Look only at a prefix, because a name may be long. */
		const letters = Array.from(name.slice(0, 2 * chars));
		return letters.length <= chars && name.length <= 2 * chars ? letters.join("") :
			letters.slice(0, chars - 1).join("") + "\u2026";
	}

	function drawRect(view, context, rect, y) {
		const box = rect.box, palette = view.palette;
		if (!box) {
			if (rect.width >= LEAST_WIDTH) {
				context.fillStyle = palette.narrow;
				context.fillRect(rect.x, y, rect.width, ROW - 1);
			}
			return;
		}
		const width = Math.max(rect.width - (rect.width > 3 ? 1 : 0), 1);
		context.globalAlpha = rect.above ? 0.55 : 1;
		context.fillStyle = box.fn >= 0 && view.matches && view.matches[box.fn] ? palette.match :
			flame.boxColour(view.model, palette, box);
		context.fillRect(rect.x, y, width, ROW - 1);
		const text = fit(view.nameOf(box), width, view.charWidth);
		if (text) {
			context.fillStyle = palette["box-ink"];
			context.fillText(text, rect.x + INSET, y + 12.5, width - 2 * INSET);
		}
		context.globalAlpha = 1;
		if (view.focus === box) {
			context.strokeStyle = palette.focus;
			context.lineWidth = 2;
			context.strokeRect(rect.x + 1, y + 1, Math.max(width - 2, 1), ROW - 3);
		}
	}

	/* Draw the visible rows. @param top First visible pixel of the picture. */
	flame.draw = function (view, top, width, height) {
		const context = flame.fitCanvas(view.canvas, width, height);
		context.font = "12px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
		view.charWidth = context.measureText("mmmmmmmmmm").width / 10;
		context.clearRect(0, 0, width, height);
		const first = Math.floor(top / ROW), last = Math.floor((top + height) / ROW);
		for (const half of view.halves)
			for (let row = first; row <= last; row++) {
				const rects = half.rows[(row - view.root) * half.direction];
				/* Two halves share the root row; draw it once. */
				if (!rects || (row === view.root && half !== view.halves[0]))
					continue;
				for (const rect of rects)
					drawRect(view, context, rect, row * ROW - top);
			}
	};
}(window.flame));
