/* SPDX-License-Identifier: MIT */
/* How does a user choose a range of time in the strip of samples? */
(function (flame) {
	"use strict";
	const BAR_WIDTH = 3, BARS_MIN = 20, HEIGHT = 52, LEAST_DRAG = 4;

	/* Position of a sample from 0 to 1: by time, or by number if times are unknown. */
	function place(time, index) {
		if (!time.times)
			return time.before[index] / (time.before[time.count] || 1);
		const begin = time.times[0], length = time.times[time.count - 1] - begin;
		return length ? (time.times[index] - begin) / length : 0;
	}

	/* The first sample at or after a position. */
	function sampleAt(time, at) {
		let low = 0, high = time.count;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (place(time, middle) < at)
				low = middle + 1;
			else
				high = middle;
		}
		return low;
	}

	flame.rangeText = function (model) {
		const time = model.timeline, range = model.range;
		const count = time.before[range[1]] - time.before[range[0]];
		const part = (100 * count / (time.before[time.count] || 1)).toFixed(2) + " %";
		const text = "chosen: " + count + " " + model.data.unit + ", " + part;
		if (!time.times || range[1] <= range[0])
			return text;
		return text + ", from " + ((time.times[range[0]] - time.times[0]) / 1e9).toFixed(3) + " s to " +
			((time.times[range[1] - 1] - time.times[0]) / 1e9).toFixed(3) + " s";
	};

	/* Count the samples of each bar by the colour of the running function. */
	function countBars(model, bars) {
		const time = model.timeline, counts = [];
		for (let i = 0; i < time.count; i++) {
			const node = model.leaf[time.chains[i]];
			const name = node ? flame.colourClass(model.functions[model.functionOf[node]]) : "all";
			const bar = Math.min(Math.floor(place(time, i) * bars), bars - 1);
			counts[bar] = counts[bar] || {};
			counts[bar][name] = (counts[bar][name] || 0) + time.before[i + 1] - time.before[i];
		}
		return counts;
	}

	function drawBars(context, palette, counts, barWidth) {
		const sums = counts.map(function (bar) {
			return Object.values(bar).reduce(function (a, b) { return a + b; }, 0);
		});
		const largest = sums.reduce(function (a, b) { return Math.max(a, b); }, 1);
		counts.forEach(function (bar, index) {
			let y = HEIGHT;
			Object.keys(bar).sort().forEach(function (name) {
				const height = bar[name] / largest * (HEIGHT - 4);
				y -= height;
				context.fillStyle = palette[name];
				context.fillRect(index * barWidth, y, barWidth - 0.5, height);
			});
		});
	}

	/* @param choose Called with [from, to) in samples, or null for all.
	 * @return draw(palette). */
	flame.makeTime = function (model, canvas, choose) {
		let palette = null, bars = null, barCount = 1, width = 0, drag = null;

		function draw(colours) {
			palette = colours || palette;
			if (width !== canvas.clientWidth) {
				width = canvas.clientWidth;
				/* With few samples, bars are wider; otherwise most bars would be
				 * empty. */
				barCount = Math.max(1, Math.min(Math.floor(width / BAR_WIDTH),
					Math.max(BARS_MIN, model.timeline.count >> 2)));
				bars = countBars(model, barCount);
			}
			const ratio = window.devicePixelRatio || 1, context = canvas.getContext("2d");
			canvas.width = width * ratio;
			canvas.height = HEIGHT * ratio;
			context.setTransform(ratio, 0, 0, ratio, 0, 0);
			drawBars(context, palette, bars, width / barCount);
			const shown = drag || (model.range && model.range.places);
			if (!shown)
				return;
			const low = Math.min(shown[0], shown[1]) * width, high = Math.max(shown[0], shown[1]) * width;
			context.globalAlpha = 0.7;
			context.fillStyle = palette.ground;
			context.fillRect(0, 0, low, HEIGHT);
			context.fillRect(high, 0, width - high, HEIGHT);
			context.globalAlpha = 1;
			context.fillStyle = palette.accent;
			context.fillRect(low - 1, 0, 2, HEIGHT);
			context.fillRect(high - 1, 0, 2, HEIGHT);
		}

		function at(event) {
			const rect = canvas.getBoundingClientRect();
			return Math.min(Math.max((event.clientX - rect.left) / rect.width, 0), 1);
		}

		canvas.addEventListener("pointerdown", function (event) {
			drag = [at(event), at(event)];
			canvas.setPointerCapture(event.pointerId);
		});
		canvas.addEventListener("pointermove", function (event) {
			if (drag) {
				drag[1] = at(event);
				draw();
			}
		});
		canvas.addEventListener("pointerup", function () {
			const places = drag && [Math.min(drag[0], drag[1]), Math.max(drag[0], drag[1])];
			drag = null;
			if (!places || (places[1] - places[0]) * width < LEAST_DRAG) {
				choose(null);
				return;
			}
			const range = [sampleAt(model.timeline, places[0]),
				       places[1] >= 1 ? model.timeline.count : sampleAt(model.timeline, places[1])];
			range.places = places;
			choose(range);
		});
		return draw;
	};
}(window.flame));
