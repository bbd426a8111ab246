/* SPDX-License-Identifier: MIT */
/* What do the page's controls do? */
(function (flame) {
	"use strict";
	const parts = {};
	document.querySelectorAll("[id]").forEach(function (part) { parts[part.id] = part; });
	const model = flame.decode(JSON.parse(parts.data.textContent));
	parts.data.remove();
	const functions = model.functions, unit = model.data.unit, hasBase = model.sides === 2;
	/* What the user sees. `zooms` has a path per half; paths survive a change of counts. */
	const view = {
		model: model, canvas: parts.canvas, palette: null, charWidth: 7.2, halves: [], root: 0, rows: 1,
		mode: "calls", icicle: false, by: 0, group: -1, focus: null, matches: null
	};
	const PATH_ENDS = 4, PAST_MAX = 200;
	let past = [], before = "calls", drawTime = null, pending = false;

	function nameOf(fn) {
		return fn < 0 ? "all" : functions[fn][0];
	}
	view.nameOf = function (box) { return nameOf(box.fn); };

	/* ---- View ------------------------------------------------------------------------------ */

	function half(root, direction) {
		return { root: root, zoom: root, direction: direction, rows: [] };
	}

	function makeHalves() {
		const down = view.icicle ? 1 : -1;
		if (view.mode === "inverted")
			return [half(flame.invertedTree(model, view.by), down)];
		if (view.mode === "sandwich")
			return [half(flame.sandwichTree(model, view.by, view.group, true), -1),
				half(flame.sandwichTree(model, view.by, view.group, false), 1)];
		return [half(flame.callsTree(model, view.by), down)];
	}

	/* @param zooms A path for each half, or nothing. */
	function rebuild(zooms) {
		view.focus = null;
		view.halves = makeHalves();
		view.halves.forEach(function (h, i) {
			if (zooms && zooms[i])
				h.zoom = flame.follow(h.root, zooms[i]);
		});
		arrange();
	}

	function zooms() {
		return view.halves.map(function (h) { return flame.pathOf(h.zoom); });
	}

	function isZoomed() {
		return view.halves.some(function (h) { return h.zoom !== h.root; });
	}

	/* Save the view before a change, so that the user can go back. */
	function remember() {
		past.push({ mode: view.mode, group: view.group, zooms: zooms() });
		if (past.length > PAST_MAX)
			past.shift();
	}

	function goBack() {
		const step = past.pop();
		if (!step)
			return;
		view.mode = step.mode;
		view.group = step.group;
		rebuild(step.zooms);
	}

	function zoom(box) {
		const owner = view.halves.find(function (h) { return h.root.tree === box.tree; });
		if (!owner || owner.zoom === box)
			return;
		remember();
		owner.zoom = box;
		view.focus = null;
		arrange();
	}

	function setMode(mode, group) {
		if (mode === "sandwich" && group === undefined)
			group = chosenGroup();
		if (mode === "sandwich" && group < 0)
			return;
		if (mode === view.mode && (mode !== "sandwich" || group === view.group))
			return;
		remember();
		if (view.mode !== "sandwich")
			before = view.mode;
		view.mode = mode;
		if (mode === "sandwich")
			view.group = group;
		rebuild(null);
	}

	/* The current function: focused, zoomed, chosen before, or the one with the most
	 * samples. */
	function chosenGroup() {
		const zoomed = view.halves[0] && view.halves[0].zoom;
		let most = null;
		if (view.focus && view.focus.fn >= 0)
			return model.group[view.focus.fn];
		if (view.mode !== "sandwich" && zoomed && zoomed.fn >= 0)
			return model.group[zoomed.fn];
		if (view.group >= 0)
			return view.group;
		model.rows.forEach(function (row) {
			if (!most || row.self[0] > most.self[0])
				most = row;
		});
		return most ? most.group : -1;
	}

	function width() {
		return Math.max(parts.graph.clientWidth, 100);
	}

	/* Place all boxes again and keep the root in sight. */
	function arrange() {
		const shown = Math.max(1, Math.floor(parts.graph.clientHeight / flame.ROW));
		const placed = flame.arrange(view.halves, width(), shown);
		view.rows = placed.rows;
		view.root = placed.root;
		parts.spacer.style.height = view.rows * flame.ROW + "px";
		parts.spacer.style.marginTop = -parts.graph.clientHeight + "px";
		draw();
		const middle = view.mode === "sandwich" ? Math.floor(shown / 2) :
			view.icicle ? 0 : shown - 1;
		parts.graph.scrollTop = (view.root - middle) * flame.ROW;
		tellPath();
		tellState();
		table.draw();
		hideTip();
	}

	function draw() {
		pending = false;
		flame.draw(view, parts.graph.scrollTop, width(), parts.graph.clientHeight);
	}

	function drawSoon() {
		if (!pending)
			requestAnimationFrame(draw);
		pending = true;
	}

	/* ---- Texts ----------------------------------------------------------------------------- */

	function element(name, text) {
		const made = document.createElement(name);
		made.textContent = text;
		return made;
	}

	function percent(share) {
		return (100 * share).toFixed(2) + " %";
	}

	function button(text, act) {
		const made = element("button", text);
		made.title = text;
		made.addEventListener("click", act);
		return made;
	}

	/* Show the path from the root to the zoomed box; a long path shows only both ends. */
	function tellPath() {
		const zoomed = view.halves.find(function (h) { return h.zoom !== h.root; }) || view.halves[0];
		const boxes = [];
		for (let box = zoomed.zoom; box; box = box.parent)
			boxes.push(box);
		boxes.reverse();
		parts.path.replaceChildren();
		boxes.forEach(function (box, i) {
			const isLast = i === boxes.length - 1;
			if (i >= PATH_ENDS && i < boxes.length - PATH_ENDS) {
				if (i === PATH_ENDS)
					parts.path.append(element("span", "\u203a \u2026"));
				return;
			}
			if (i > 0)
				parts.path.append(element("span", zoomed.root.tree.up ? "\u2039" : "\u203a"));
			const made = button(view.nameOf(box), function () { zoom(box); });
			made.disabled = isLast;
			parts.path.append(made);
		});
		const last = boxes[boxes.length - 1];
		if (last.fn >= 0 && !(view.mode === "sandwich" && model.group[last.fn] === view.group)) {
			const more = button("callers and callees", function () {
				setMode("sandwich", model.group[last.fn]);
			});
			more.className = "more";
			parts.path.append(more);
		}
	}

	function tellState() {
		["calls", "inverted", "sandwich"].forEach(function (mode) {
			parts[mode].setAttribute("aria-pressed", String(view.mode === mode));
		});
		parts.icicle.setAttribute("aria-pressed", String(view.icicle));
		parts.icicle.disabled = view.mode === "sandwich";
		parts.list.setAttribute("aria-pressed", String(!parts.table.hidden));
		parts.widths.textContent = view.by ? "widths: before" : "widths: now";
		parts.widths.setAttribute("aria-pressed", String(view.by === 1));
	}

	function tellAbout() {
		const chains = model.leaf.reduce(function (n, leaf) {
			return n + (model.recorded[0][leaf] > 0 ? 1 : 0);
		}, 0);
		let text = model.data.samples + " " + unit + ", " + chains + " call chains";
		if (hasBase)
			text += "; " + model.data.base + " " + unit + " before";
		if (model.range)
			text += "; " + flame.rangeText(model);
		parts.about.textContent = text;
	}

	function tellComments() {
		parts.about.title = model.data.comments.join("\n");
		parts.comments.replaceChildren(...model.data.comments.map(function (line) {
			return element("p", line);
		}));
	}

	function tellLegend() {
		parts.legend.replaceChildren();
		if (!hasBase) {
			flame.legend(functions).forEach(function (kind) {
				const entry = element("span", kind[1]), colour = document.createElement("i");
				colour.style.background = "var(--" + kind[0] + ")";
				entry.prepend(colour);
				parts.legend.append(entry);
			});
			return;
		}
		const steps = document.createElement("span");
		for (let i = -4; i <= 4; i++) {
			const step = document.createElement("i");
			step.className = "step";
			step.style.background = flame.changeColour(i / 4);
			steps.append(step);
		}
		parts.legend.append(element("span", "-" + (100 * model.largest).toFixed(2) + " points"), steps,
				    element("span", "+" + (100 * model.largest).toFixed(2) + " points"));
	}

	/* ---- Tooltip --------------------------------------------------------------------------- */

	function seconds(samples) {
		return (samples * model.data.period_ns / 1e9).toPrecision(3) + " s";
	}

	/* One line of numbers: label, samples, share, and the change. */
	function addNumbers(table, what, values) {
		const row = table.insertRow();
		row.append(element("th", what));
		row.insertCell().textContent = values[0] + " " + unit;
		row.insertCell().textContent = percent(flame.share(model, values[0], 0));
		if (model.data.period_ns && unit === "samples")
			row.insertCell().textContent = "about " + seconds(values[0]);
		if (!hasBase)
			return;
		const change = 100 * flame.change(model, values);
		row.insertCell().textContent = "before " + values[1] + " " + unit;
		row.insertCell().textContent = percent(flame.share(model, values[1], 1));
		row.insertCell().textContent = "change " + (change > 0 ? "+" : "") + change.toFixed(2) + " points";
	}

	function describe(box) {
		const row = functions[box.fn] || ["all", -1, 0];
		const end = row[3] ? " (" + row[3] + ")" : "";
		const name = end && row[0].endsWith(end) ? row[0].slice(0, -end.length) : row[0];
		const table = document.createElement("table"), lines = [element("b", name)];
		const about = [flame.kindText(row), row[3]].filter(Boolean).join(" \u00b7 ");
		if (about)
			lines.push(element("p", about));
		if (!box.tree.up)
			addNumbers(table, "self", box.self);
		addNumbers(table, box.tree.up ? "this way" : "total", box.values);
		const counts = box.fn >= 0 && model.rows.get(model.group[box.fn]);
		if (counts) {
			addNumbers(table, "function, self", counts.self);
			addNumbers(table, "function, total", counts.total);
		}
		const owner = view.halves.find(function (h) { return h.root.tree === box.tree; });
		if (owner && owner.zoom !== owner.root && owner.zoom.values[view.by]) {
			const line = table.insertRow();
			line.append(element("th", "of zoomed frame"));
			line.insertCell();
			line.insertCell().textContent =
				percent(Math.min(box.values[view.by] / owner.zoom.values[view.by], 1));
		}
		lines.push(table);
		return lines;
	}

	function describeNarrow(rect) {
		return [element("b", rect.count + " frames too narrow to be drawn"),
			element("p", rect.value + " " + unit + ", " +
				percent(flame.share(model, rect.value, view.by)) +
				"; zoom to see more of them, or look into the table of functions")];
	}

	function hideTip() {
		parts.tip.hidden = true;
	}

	function showTip(rect, x, y) {
		parts.tip.replaceChildren(...(rect.box ? describe(rect.box) : describeNarrow(rect)));
		parts.tip.hidden = false;
		const size = parts.tip.getBoundingClientRect();
		const left = Math.max(4, Math.min(x + 14, window.innerWidth - size.width - 8));
		const below = y + 18 + size.height < window.innerHeight;
		parts.tip.style.left = left + "px";
		parts.tip.style.top = Math.max(4, below ? y + 18 : y - size.height - 10) + "px";
	}

	function rectAt(event) {
		const place = parts.canvas.getBoundingClientRect();
		const row = Math.floor((event.clientY - place.top + parts.graph.scrollTop) / flame.ROW);
		return flame.find(view.halves, view.root, row, event.clientX - place.left);
	}

	parts.canvas.addEventListener("mousemove", function (event) {
		const rect = rectAt(event);
		parts.canvas.style.cursor = rect ? "pointer" : "";
		if (rect)
			showTip(rect, event.clientX, event.clientY);
		else
			hideTip();
	});
	parts.canvas.addEventListener("mouseleave", hideTip);
	parts.canvas.addEventListener("click", function (event) {
		const rect = rectAt(event);
		if (!rect)
			return;
		if (event.shiftKey && rect.box && rect.box.fn >= 0)
			setMode("sandwich", model.group[rect.box.fn]);
		else
			zoom(rect.box || rect.of);
	});

	/* ---- Search ---------------------------------------------------------------------------- */

	function search() {
		const pattern = parts.search.value;
		let expression = null, isWrong = false;
		view.matches = null;
		parts.matched.textContent = "";
		if (pattern) {
			try {
				expression = new RegExp(pattern, "i");
			} catch (error) {
				isWrong = true;
				expression = new RegExp(pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
			}
			view.matches = Uint8Array.from(functions, function (row) { return expression.test(row[0]); });
			const sums = flame.countMatches(model, view.matches);
			parts.matched.textContent = "matched " + percent(flame.share(model, sums[0], 0)) +
				(hasBase ? ", before " + percent(flame.share(model, sums[1], 1)) : "");
		}
		parts.search.classList.toggle("wrong", isWrong);
		draw();
		table.draw();
	}

	/* ---- Keys ------------------------------------------------------------------------------ */

	function focusOn(rect, row) {
		view.focus = rect.box;
		const y = row * flame.ROW, height = parts.graph.clientHeight;
		if (y < parts.graph.scrollTop)
			parts.graph.scrollTop = y;
		else if (y + flame.ROW > parts.graph.scrollTop + height)
			parts.graph.scrollTop = y + flame.ROW - height;
		draw();
		const place = parts.canvas.getBoundingClientRect();
		showTip(rect, place.left + Math.max(rect.x, 0), place.top + y - parts.graph.scrollTop);
		parts.spoken.textContent = Array.from(parts.tip.querySelectorAll("b, p, tr"), function (part) {
			return part.textContent;
		}).join(", ");
	}

	/* The boxes of a row of the picture, with their rectangles. */
	function boxesOf(row) {
		for (const h of view.halves) {
			const rects = h.rows[(row - view.root) * h.direction];
			if (rects)
				return rects.filter(function (r) { return r.box; });
		}
		return [];
	}

	function focusedAt() {
		for (let row = 0; row < view.rows; row++) {
			const rect = boxesOf(row).find(function (r) { return r.box === view.focus; });
			if (rect)
				return { row: row, rect: rect };
		}
		return null;
	}

	/* Move the focus within the row, or to the box over the same samples in the row above or
	 * below. */
	function walk(rows, columns) {
		const from = focusedAt();
		if (!from) {
			const first = view.halves[0];
			return focusOn({ box: first.zoom, x: 0, width: width() },
				       view.root + first.direction * first.zoom.depth);
		}
		const rects = boxesOf(from.row + rows);
		const middle = from.rect.x + from.rect.width / 2;
		const next = columns ? rects[rects.indexOf(from.rect) + columns] :
			rects.find(function (r) { return r.x <= middle && middle < r.x + r.width; }) ||
			rects.find(function (r) { return r.x >= from.rect.x && r.x < from.rect.x + from.rect.width; });
		return next && focusOn(next, from.row + rows);
	}

	/* Undo one thing per call. */
	function escape() {
		if (!parts.help.hidden) {
			parts.help.hidden = true;
		} else if (!parts.tip.hidden && view.focus) {
			view.focus = null;
			hideTip();
			draw();
		} else if (isZoomed()) {
			remember();
			rebuild(null);
		} else if (parts.search.value) {
			parts.search.value = "";
			search();
		} else if (view.mode !== "calls") {
			setMode(view.mode === "sandwich" ? before : "calls");
		} else if (model.range) {
			choose(null);
		}
		parts.search.blur();
	}

	const keys = {
		"/": function () { parts.search.focus(); parts.search.select(); },
		"?": function () { parts.help.hidden = !parts.help.hidden; },
		"c": function () { setMode("calls"); },
		"b": function () { setMode("inverted"); },
		"s": function () { setMode("sandwich"); },
		"i": function () {
			if (view.mode === "sandwich")
				return;
			view.icicle = !view.icicle;
			rebuild(zooms());
		},
		"t": function () {
			parts.table.hidden = !parts.table.hidden;
			rebuild(zooms());
		},
		"w": function () {
			if (!hasBase)
				return;
			view.by = 1 - view.by;
			rebuild(zooms());
		},
		"d": function () {
			setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
		},
		"Backspace": goBack,
		"Enter": function () {
			if (view.focus)
				zoom(view.focus);
		},
		"ArrowUp": function () { walk(-1, 0); },
		"ArrowDown": function () { walk(1, 0); },
		"ArrowLeft": function () { walk(0, -1); },
		"ArrowRight": function () { walk(0, 1); }
	};

	document.addEventListener("keydown", function (event) {
		if (event.ctrlKey || event.metaKey || event.altKey)
			return;
		if (event.key === "Escape") {
			escape();
		} else if (event.target.tagName === "INPUT" || !Object.hasOwn(keys, event.key) ||
			   (event.key === "Enter" && event.target.tagName === "BUTTON")) {
			return;
		} else {
			keys[event.key]();
		}
		event.preventDefault();
	});

	/* ---- Begin ----------------------------------------------------------------------------- */

	function setTheme(theme) {
		document.documentElement.dataset.theme = theme;
		parts.theme.textContent = theme === "dark" ? "light" : "dark";
		view.palette = flame.readPalette();
		if (drawTime)
			drawTime(view.palette);
		if (view.halves.length) {
			draw();
			table.draw();
		}
	}

	/* @param range Samples of the timeline, or null for all. */
	function choose(range) {
		model.range = range;
		flame.count(model);
		tellAbout();
		drawTime();
		rebuild(zooms());
		table.fill();
		if (view.matches)
			search();
	}

	const table = flame.makeTable(view, parts, nameOf, function (group) { setMode("sandwich", group); });
	[["calls", "c"], ["inverted", "b"], ["sandwich", "s"], ["icicle", "i"], ["widths", "w"], ["list", "t"],
	 ["theme", "d"], ["explain", "?"]].forEach(function (pair) {
		parts[pair[0]].addEventListener("click", function () { keys[pair[1]](); });
	});
	parts.search.addEventListener("input", search);
	parts.graph.addEventListener("scroll", drawSoon);
	const dark = window.matchMedia("(prefers-color-scheme: dark)");
	dark.addEventListener("change", function () { setTheme(dark.matches ? "dark" : "light"); });
	new ResizeObserver(function () {
		if (view.halves.length)
			rebuild(zooms());
		if (drawTime)
			drawTime();
	}).observe(parts.graph);
	parts.widths.hidden = !hasBase;
	if (model.timeline && model.timeline.count) {
		parts.time.hidden = false;
		drawTime = flame.makeTime(model, parts.time, choose);
	}
	setTheme(dark.matches ? "dark" : "light");
	tellAbout();
	tellComments();
	tellLegend();
	rebuild(null);
	table.fill();
	flame.view = view;
	flame.model = model;
}(window.flame));
