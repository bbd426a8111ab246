/* SPDX-License-Identifier: MIT */
/* How does the table of functions sort by any column and build only the visible rows? */
(function (flame) {
	"use strict";
	const ROW = 22, SPARE = 10;

	function percent(share) {
		return (100 * share).toFixed(2);
	}

	function signed(share) {
		return (share > 0 ? "+" : "") + percent(share);
	}

	/* Columns: [heading, sort value, text]. */
	function makeColumns(model, nameOf) {
		const columns = [
			["self", function (r) { return r.self[0]; }, function (r) { return String(r.self[0]); }],
			["%", function (r) { return r.self[0]; },
			 function (r) { return percent(flame.share(model, r.self[0], 0)); }],
			["total", function (r) { return r.total[0]; }, function (r) { return String(r.total[0]); }],
			["%", function (r) { return r.total[0]; },
			 function (r) { return percent(flame.share(model, r.total[0], 0)); }]
		];
		if (model.sides === 2)
			columns.push(["self change", function (r) { return flame.change(model, r.self); },
				      function (r) { return signed(flame.change(model, r.self)); }],
				     ["total change", function (r) { return flame.change(model, r.total); },
				      function (r) { return signed(flame.change(model, r.total)); }]);
		else
			columns.push(["kind", function (r) { return flame.kindText(model.functions[r.group]); },
				      function (r) { return flame.kindText([0, model.functions[r.group][1]]); }]);
		columns.push(["function", function (r) { return nameOf(r.group); },
			      function (r) { return nameOf(r.group); }]);
		return columns;
	}

	/* @param view Has model, palette, matches, group. @param choose Called with a function.
	 * @return { fill(): update after counts changed, draw() }. */
	flame.makeTable = function (view, parts, nameOf, choose) {
		const columns = makeColumns(view.model, nameOf);
		let rows = [], sorted = 0, falling = true;

		function sort() {
			const value = columns[sorted][1], sign = falling ? -1 : 1;
			rows.sort(function (a, b) {
				const x = value(a), y = value(b);
				return x < y ? -sign : x > y ? sign : b.self[0] - a.self[0] ||
					b.total[0] - a.total[0] || a.group - b.group;
			});
			Array.from(parts.columns.children).forEach(function (cell, index) {
				cell.setAttribute("aria-sort", index !== sorted ? "none" :
					falling ? "descending" : "ascending");
				cell.firstChild.textContent = columns[index][0] +
					(index !== sorted ? "" : falling ? " \u25bc" : " \u25b2");
			});
		}

		columns.forEach(function (column, index) {
			const cell = document.createElement("th"), button = document.createElement("button");
			cell.scope = "col";
			cell.className = index > 3 ? "text" : "";
			cell.appendChild(button);
			parts.columns.appendChild(cell);
			button.addEventListener("click", function () {
				falling = sorted === index ? !falling : index < 4 || view.model.sides === 2;
				sorted = index;
				sort();
				draw();
			});
		});

		function makeRow(row) {
			const line = document.createElement("tr"), group = row.group;
			line.tabIndex = 0;
			line.classList.toggle("chosen", view.mode === "sandwich" && view.group === group);
			line.classList.toggle("match", Boolean(view.matches && view.matches[group]));
			columns.forEach(function (column, index) {
				const cell = line.insertCell();
				cell.textContent = column[2](row);
				cell.className = column[0] === "function" ? "text name" : column[0] === "kind" ? "text" : "";
				if (column[0] === "function") {
					const colour = document.createElement("i");
					colour.style.background = flame.boxColour(view.model, view.palette,
						{ fn: group, values: row.total });
					cell.insertBefore(colour, cell.firstChild);
					cell.title = cell.textContent;
				}
			});
			line.addEventListener("click", function () { choose(group); });
			line.addEventListener("keydown", function (event) {
				if (event.key === "Enter") {
					event.stopPropagation();
					choose(group);
				}
			});
			return line;
		}

		function makeSpace(height) {
			const line = document.createElement("tr"), cell = line.insertCell();
			cell.colSpan = columns.length;
			cell.style.height = height + "px";
			cell.style.padding = "0";
			return line;
		}

		function draw() {
			if (parts.table.hidden)
				return;
			const shown = Math.ceil(parts.table.clientHeight / ROW) + 2 * SPARE;
			const first = Math.max(0, Math.min(Math.floor(parts.table.scrollTop / ROW) - SPARE,
							   rows.length - shown));
			const made = rows.slice(first, first + shown).map(makeRow);
			parts.rows.replaceChildren(makeSpace(first * ROW), ...made,
				makeSpace(Math.max(0, rows.length - first - shown) * ROW));
		}

		function fill() {
			rows = Array.from(view.model.rows.values()).filter(function (row) {
				return row.total[0] > 0 || row.total[1] > 0;
			});
			sort();
			draw();
		}

		parts.table.addEventListener("scroll", draw);
		return { fill: fill, draw: draw };
	};
}(window.flame));
