/* SPDX-License-Identifier: MIT
 * Zoom, search and details of a flame graph. The graph is complete without this script. */
(function () {
	"use strict";
	var PAD = 10, CHAR = 7.23, LEAST_CHARS = 3, LEAST_WIDTH = 0.1;
	var svg = document.documentElement;
	var total = +svg.getAttribute("data-samples");
	var area = document.getElementById("frames");
	var details = document.getElementById("details");
	var matched = document.getElementById("matched");
	var tools = document.getElementById("tools");
	var input = document.getElementById("search");
	var reset = document.getElementById("reset");
	var idle = details.textContent;
	var width = 0, zoomed, focused = null, expression = null;

	/* Start and width in samples, depth from the root; in depth-first order. */
	var frames = Array.prototype.map.call(document.querySelectorAll(".f"), function (g, index) {
		var lines = g.querySelector("title").textContent.split("\n");
		var frame = {
			index: index, group: g, rect: g.querySelector("rect"),
			text: g.querySelector("text"), name: lines[0], about: lines[1],
			start: +g.getAttribute("data-s"), count: +g.getAttribute("data-c"),
			depth: +g.getAttribute("data-d"), shown: true
		};
		g.addEventListener("click", function () { zoom(frame); });
		g.addEventListener("mouseenter", function () { describe(frame); });
		g.addEventListener("mouseleave", function () { describe(focused); });
		return frame;
	});
	zoomed = frames[0];

	function describe(frame) {
		details.textContent = frame ? frame.name + " \u2014 " + frame.about : idle;
	}

	function contains(outer, inner) {
		return outer.depth <= inner.depth && outer.start <= inner.start &&
			outer.start + outer.count >= inner.start + inner.count;
	}

	function fit(name, pixels) {
		var chars = Math.floor((pixels - 6) / CHAR);
		var letters = Array.from(name);
		if (chars < LEAST_CHARS)
			return "";
		return letters.length <= chars ? name : letters.slice(0, chars - 1).join("") + "\u2026";
	}

	function place(frame) {
		var above = frame !== zoomed && contains(frame, zoomed);
		var left = above ? 0 : (frame.start - zoomed.start) / zoomed.count;
		var part = above ? 1 : frame.count / zoomed.count;
		frame.shown = (above || contains(zoomed, frame)) && part * width >= LEAST_WIDTH;
		frame.group.style.display = frame.shown ? "" : "none";
		if (!frame.shown)
			return;
		frame.group.classList.toggle("above", above);
		frame.rect.setAttribute("x", 100 * left + "%");
		frame.rect.setAttribute("width", 100 * part + "%");
		frame.text.setAttribute("x", 100 * left + "%");
		frame.text.textContent = fit(frame.name, part * width);
	}

	function draw() {
		width = Math.max(window.innerWidth - 2 * PAD, 400);
		svg.setAttribute("width", width + 2 * PAD);
		area.setAttribute("width", width);
		tools.setAttribute("x", width + PAD - +tools.getAttribute("width"));
		frames.forEach(place);
		reset.disabled = zoomed === frames[0] && !expression;
	}

	/* Samples below any match; a match below another match does not count again. */
	function search(pattern) {
		var end = -1, sum = 0;
		expression = null;
		if (pattern) {
			try {
				expression = new RegExp(pattern, "i");
			} catch (error) {
				expression = new RegExp(pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
			}
		}
		frames.forEach(function (frame) {
			var hit = expression !== null && frame.depth > 0 && expression.test(frame.name);
			frame.group.classList.toggle("match", hit);
			if (hit && frame.start >= end) {
				sum += frame.count;
				end = frame.start + frame.count;
			}
		});
		matched.textContent = expression ?
			"matched " + (100 * sum / total).toFixed(2) + "%" : "";
		reset.disabled = zoomed === frames[0] && !expression;
		remember();
	}

	function zoom(frame) {
		zoomed = frame;
		draw();
		remember();
	}

	/* The address contains the view, so that a user can share it. */
	function remember() {
		var parts = [];
		if (zoomed !== frames[0])
			parts.push("zoom=" + zoomed.index);
		if (expression)
			parts.push("search=" + encodeURIComponent(input.value));
		try {
			history.replaceState(null, "", "#" + parts.join("&"));
		} catch (error) {
			/* Some viewers have no history for files; the view works without it. */
		}
	}

	function restore() {
		var view = {};
		window.location.hash.slice(1).split("&").forEach(function (part) {
			var at = part.indexOf("=");
			if (at > 0)
				view[part.slice(0, at)] = decodeURIComponent(part.slice(at + 1));
		});
		input.value = view.search || "";
		zoomed = frames[+view.zoom] || frames[0];
		draw();
		search(input.value);
	}

	function clear() {
		input.value = "";
		focus(null);
		search("");
		zoom(frames[0]);
	}

	function focus(frame) {
		if (focused)
			focused.group.classList.remove("focus");
		focused = frame;
		describe(frame);
		if (!frame)
			return;
		frame.group.classList.add("focus");
		frame.group.scrollIntoView({ block: "nearest" });
	}

	/* The nearest visible frame from the focused one that passes the test. */
	function seek(step, suits) {
		for (var i = focused.index + step; i >= 0 && i < frames.length; i += step)
			if (frames[i].shown && suits(frames[i]))
				return focus(frames[i]);
	}

	var moves = {
		ArrowUp: function () {
			seek(1, function (f) { return f.depth === focused.depth + 1 && contains(focused, f); });
		},
		ArrowDown: function () {
			seek(-1, function (f) { return f.depth === focused.depth - 1 && contains(f, focused); });
		},
		ArrowLeft: function () { seek(-1, function (f) { return f.depth === focused.depth; }); },
		ArrowRight: function () { seek(1, function (f) { return f.depth === focused.depth; }); },
		Enter: function () { zoom(focused); }
	};

	document.addEventListener("keydown", function (event) {
		if (event.key === "Escape") {
			input.blur();
			clear();
		} else if (event.target === input || event.target === reset || event.ctrlKey ||
			   event.metaKey || event.altKey) {
			return;
		} else if (event.key === "/") {
			input.focus();
			event.preventDefault();
		} else if (moves[event.key]) {
			if (focused)
				moves[event.key]();
			else
				focus(zoomed);
			event.preventDefault();
		}
	});
	input.addEventListener("input", function () { search(input.value); });
	reset.addEventListener("click", clear);
	window.addEventListener("resize", draw);
	window.addEventListener("hashchange", restore);
	tools.style.display = "block";
	restore();
}());
