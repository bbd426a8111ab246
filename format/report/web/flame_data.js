/* SPDX-License-Identifier: MIT */
/* Which tree, counts and boxes does the profile give? */
window.flame = {};
(function (flame) {
	"use strict";

	/* Chains share their common prefixes: nodes are in depth-first order, 0 is the root.
	 * Counts have an entry for [0] the profile and [1] the base. `leaf` has the last node of
	 * each chain. */
	flame.decode = function (data) {
		const chains = data.chains, sides = data.base === undefined ? 1 : 2;
		let count = 1, chainCount = 0, longest = 0;
		for (let at = 0; at < chains.length; at += 2 + chains[at + 1] + sides) {
			count += chains[at + 1];
			longest = Math.max(longest, chains[at] + chains[at + 1]);
			chainCount++;
		}
		const model = {
			data: data, sides: sides, count: count, functions: data.functions,
			functionOf: new Int32Array(count), parent: new Int32Array(count),
			size: new Int32Array(count).fill(1), leaf: new Int32Array(chainCount),
			recorded: [new Float64Array(count), new Float64Array(count)],
			self: [new Float64Array(count), new Float64Array(count)],
			total: [new Float64Array(count), new Float64Array(count)],
			sum: [0, 0], range: null
		};
		const open = new Int32Array(longest + 1);
		let node = 0;
		model.functionOf[0] = -1;
		for (let at = 0, chain = 0; chain < chainCount; chain++) {
			let depth = chains[at++];
			for (let left = chains[at++]; left > 0; left--) {
				model.parent[++node] = open[depth++];
				model.functionOf[node] = chains[at++];
				open[depth] = node;
			}
			model.leaf[chain] = node;
			for (let side = 0; side < sides; side++)
				model.recorded[side][node] = chains[at++];
		}
		for (node = count - 1; node > 0; node--)
			model.size[model.parent[node]] += model.size[node];
		data.chains = null;
		group(model);
		model.timeline = data.timeline ? flame.readTimeline(data.timeline) : null;
		flame.count(model);
		return model;
	};

	/* Pictures distinguish compiled and interpreted frames of a function; tables do not. */
	function group(model) {
		const first = new Map();
		model.group = new Int32Array(model.functions.length);
		model.functions.forEach(function (row, index) {
			const key = row[1] + " " + row[0];
			if (!first.has(key))
				first.set(key, index);
			model.group[index] = first.get(key);
		});
	}

	flame.readTimeline = function (timeline) {
		const count = timeline.chains.length, before = new Float64Array(count + 1);
		for (let i = 0; i < count; i++)
			before[i + 1] = before[i] + (timeline.weights ? timeline.weights[i] : 1);
		return { chains: timeline.chains, count: count, before: before,
			 times: timeline.times_ns || null };
	};

	/* Count all samples, or the samples of the chosen range [from, to) of the timeline. */
	flame.count = function (model) {
		const time = model.timeline;
		for (let side = 0; side < model.sides; side++)
			model.self[side].set(model.recorded[side]);
		if (time && model.range) {
			model.self[0].fill(0);
			for (let i = model.range[0]; i < model.range[1]; i++)
				model.self[0][model.leaf[time.chains[i]]] +=
					time.before[i + 1] - time.before[i];
		}
		for (let side = 0; side < model.sides; side++) {
			const total = model.total[side];
			total.set(model.self[side]);
			for (let node = model.count - 1; node > 0; node--)
				total[model.parent[node]] += total[node];
			model.sum[side] = total[0];
		}
		model.rows = countFunctions(model);
		model.largest = largestChange(model);
	};

	/* A recursive function counts once per sample. */
	function countFunctions(model) {
		const rows = new Map(), open = new Int32Array(model.functions.length);
		const path = [];
		for (let node = 1; node < model.count; node++) {
			const group = model.group[model.functionOf[node]];
			while (path.length && path[path.length - 1][1] !== model.parent[node])
				open[path.pop()[0]]--;
			let row = rows.get(group);
			if (!row) {
				row = { group: group, self: [0, 0], total: [0, 0] };
				rows.set(group, row);
			}
			for (let side = 0; side < model.sides; side++) {
				row.self[side] += model.self[side][node];
				if (open[group] === 0)
					row.total[side] += model.total[side][node];
			}
			open[group]++;
			path.push([group, node]);
		}
		return rows;
	}

	flame.share = function (model, value, side) {
		return model.sum[side] ? value / model.sum[side] : 0;
	};

	flame.change = function (model, values) {
		return flame.share(model, values[0], 0) - flame.share(model, values[1], 1);
	};

	function largestChange(model) {
		let largest = 0;
		if (model.sides === 2)
			for (let node = 1; node < model.count; node++)
				largest = Math.max(largest, Math.abs(flame.change(model,
					[model.total[0][node], model.total[1][node]])));
		return largest;
	}

	/* Samples below any match; a match below another match does not count again. */
	flame.countMatches = function (model, matches) {
		const sums = [0, 0];
		for (let node = 1; node < model.count;) {
			if (!matches[model.functionOf[node]]) {
				node++;
				continue;
			}
			sums[0] += model.total[0][node];
			sums[1] += model.total[1][node];
			node += model.size[node];
		}
		return sums;
	};

	/* ---- Boxes: made when they are first shown --------------------------------------------- */

	/* A box represents nodes of one function. If the tree leads to callers, `nodes` are the
	 * callers reached so far, and `origins` the nodes where each path began; the origins
	 * have the samples. */
	function Box(tree, parent, fn) {
		this.tree = tree;
		this.parent = parent;
		this.depth = parent ? parent.depth + 1 : 0;
		this.fn = fn;
		this.nodes = [];
		this.origins = tree.up ? [] : null;
		this.values = [0, 0];
		this.self = [0, 0];
		this.start = 0;
		this.children = null;
	}

	function put(box, node, origin) {
		const model = box.tree.model;
		box.nodes.push(node);
		if (box.origins)
			box.origins.push(origin);
		for (let side = 0; side < model.sides; side++) {
			box.values[side] += box.tree.weights[side][origin];
			box.self[side] += model.self[side][origin];
		}
	}

	/* One box for all calls; its children are the first functions of the chains. */
	flame.callsTree = function (model, by) {
		const box = new Box({ model: model, up: false, by: by, weights: model.total }, null, -1);
		put(box, 0, 0);
		return box;
	};

	/* The children of the root are the running functions; their children are the callers. */
	flame.invertedTree = function (model, by) {
		const box = new Box({ model: model, up: true, by: by, weights: model.self }, null, -1);
		box.values = [model.sum[0], model.sum[1]];
		return box;
	};

	/* Callers or callees of a function. In a recursion, only the outermost call counts. */
	flame.sandwichTree = function (model, by, group, up) {
		const box = new Box({ model: model, up: up, by: by, weights: model.total }, null, group);
		for (let node = 1; node < model.count;) {
			if (model.group[model.functionOf[node]] === group) {
				put(box, node, node);
				node += model.size[node];
			} else {
				node++;
			}
		}
		return box;
	};

	function child(found, box, fn) {
		let made = found.get(fn);
		if (!made) {
			made = new Box(box.tree, box, fn);
			found.set(fn, made);
		}
		return made;
	}

	function findCallers(box, found) {
		const model = box.tree.model;
		if (box.fn < 0) {
			for (let node = 1; node < model.count; node++)
				if (model.self[0][node] || model.self[1][node])
					put(child(found, box, model.functionOf[node]), node, node);
			return;
		}
		for (let i = 0; i < box.nodes.length; i++) {
			const caller = model.parent[box.nodes[i]];
			if (caller)
				put(child(found, box, model.functionOf[caller]), caller, box.origins[i]);
		}
	}

	function findCallees(box, found) {
		const model = box.tree.model;
		for (const node of box.nodes)
			for (let at = node + 1; at < node + model.size[node]; at += model.size[at])
				put(child(found, box, model.functionOf[at]), at, at);
	}

	flame.expand = function (box) {
		if (box.children)
			return box.children;
		const found = new Map(), by = box.tree.by;
		if (box.tree.up)
			findCallers(box, found);
		else
			findCallees(box, found);
		box.children = Array.from(found.values()).filter(function (b) { return b.values[by] > 0; });
		/* Callees stay in the order of names, so that pictures can be compared. */
		if (box.tree.up || box.nodes.length > 1)
			box.children.sort(function (a, b) {
				return b.values[by] - a.values[by] || a.fn - b.fn;
			});
		let start = box.start;
		for (const made of box.children) {
			made.start = start;
			start += made.values[by];
		}
		return box.children;
	};

	/* The functions from the root to a box; they find the box again in another tree. */
	flame.pathOf = function (box) {
		const path = [];
		for (; box.parent; box = box.parent)
			path.push(box.fn);
		return path.reverse();
	};

	flame.follow = function (root, path) {
		let box = root;
		for (const fn of path) {
			const next = flame.expand(box).find(function (b) { return b.fn === fn; });
			if (!next)
				break;
			box = next;
		}
		return box;
	};
}(window.flame));
