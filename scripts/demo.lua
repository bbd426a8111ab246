-- SPDX-License-Identifier: MIT
-- A workload to look at with ljprof: a shop's access log is written, parsed, summed up, searched for
-- misspelt words and ranked, over and over.
--
-- Usage: luajit demo.lua [--jit] [SECONDS]

local seconds = 10
local use_jit = false
for _, argument in ipairs(arg) do
	if argument == "--jit" then
		use_jit = true
	else
		seconds = tonumber(argument) or error("usage: luajit demo.lua [--jit] [SECONDS]")
	end
end

-- Without the compiler every call shows as a frame of its own. With it (--jit) hot loops run as
-- compiled traces, which show the calls that were inlined in them.
if jit and not use_jit then
	jit.off()
end

local pages = { "cart", "checkout", "search", "product", "account", "help", "offers", "returns" }
local agents = { "Firefox/128.0", "Chrome/126.0", "Safari/17.4", "curl/8.5", "bot/2.1" }

-- A small generator, so that every run does the same work.
local seed = 42
local function random(limit)
	seed = (seed * 16807) % 2147483647
	return seed % limit + 1
end

-- ---- Writing the log ---------------------------------------------------------------------------

local function make_query()
	local words = {}
	for i = 1, random(4) do
		words[i] = string.format("item%%%02x%d", 32 + random(64), random(500))
	end
	return table.concat(words, "+")
end

local function make_line()
	return string.format('10.0.%d.%d "GET /%s?q=%s" %d %d "%s"', random(4), random(250),
		pages[random(#pages)], make_query(), random(20) == 1 and 500 or 200, random(9000),
		agents[random(#agents)])
end

-- A coroutine that hands out one line at a time.
local function log_writer(count)
	return coroutine.wrap(function()
		for _ = 1, count do
			coroutine.yield(make_line())
		end
	end)
end

-- ---- Reading it --------------------------------------------------------------------------------

local function unescape(text)
	return (text:gsub("%%(%x%x)", function(hex)
		return string.char(tonumber(hex, 16))
	end))
end

local function parse_line(line)
	local host, page, query, status, size, agent =
		line:match('^(%S+) "GET /(%w+)%?q=(%S*)" (%d+) (%d+) "([^"]*)"$')
	return { host = host, page = page, query = unescape(query), status = tonumber(status),
		size = tonumber(size), agent = agent }
end

-- A second coroutine, fed by the first.
local function log_reader(lines)
	return coroutine.wrap(function()
		for line in lines do
			coroutine.yield(parse_line(line))
		end
	end)
end

-- ---- Summing up --------------------------------------------------------------------------------

local function count_words(counts, query)
	for word in query:gmatch("[^+]+") do
		counts[word] = (counts[word] or 0) + 1
	end
end

local function add_visit(totals, visit)
	local page = totals.pages[visit.page]
	if not page then
		page = { name = visit.page, visits = 0, bytes = 0, errors = 0 }
		totals.pages[visit.page] = page
	end
	page.visits = page.visits + 1
	page.bytes = page.bytes + visit.size
	page.errors = page.errors + (visit.status >= 500 and 1 or 0)
	count_words(totals.words, visit.query)
end

local function by_count(a, b)
	if a.count ~= b.count then
		return a.count > b.count
	end
	return a.word < b.word
end

local function rank_words(counts)
	local ranked = {}
	for word, count in pairs(counts) do
		ranked[#ranked + 1] = { word = word, count = count }
	end
	table.sort(ranked, by_count)
	return ranked
end

-- How many letters must change to get from one word to the other (Levenshtein).
local function edit_distance(a, b)
	local row = {}
	for j = 0, #b do
		row[j] = j
	end
	for i = 1, #a do
		local diagonal = row[0]
		row[0] = i
		for j = 1, #b do
			local cost = a:byte(i) == b:byte(j) and 0 or 1
			local best = math.min(row[j] + 1, row[j - 1] + 1, diagonal + cost)
			diagonal, row[j] = row[j], best
		end
	end
	return row[#b]
end

-- "Did you mean …?" for the rarest words, out of the most frequent ones.
local function suggest(ranked)
	local suggestions = {}
	for i = math.max(1, #ranked - 40), #ranked do
		local nearest = math.huge
		for j = 1, math.min(15, #ranked) do
			local distance = edit_distance(ranked[i].word, ranked[j].word)
			if distance < nearest then
				nearest, suggestions[ranked[i].word] = distance, ranked[j].word
			end
		end
	end
	return suggestions
end

-- ---- The report --------------------------------------------------------------------------------

local function encode(value)
	if type(value) == "table" then
		local parts = {}
		for key, item in pairs(value) do
			parts[#parts + 1] = string.format("%q:%s", tostring(key), encode(item))
		end
		return "{" .. table.concat(parts, ",") .. "}"
	end
	return type(value) == "string" and string.format("%q", value) or tostring(value)
end

local function run_once(count)
	local totals = { pages = {}, words = {} }
	for visit in log_reader(log_writer(count)) do
		add_visit(totals, visit)
	end
	totals.words = rank_words(totals.words)
	totals.suggestions = suggest(totals.words)
	return #encode(totals)
end

local function main()
	local finish = os.time() + seconds
	local rounds = 0
	io.write("demo: working for ", seconds, " seconds\n")
	io.flush()
	repeat
		run_once(2000)
		rounds = rounds + 1
	until os.time() >= finish
	io.write("demo: ", rounds, " logs of 2000 lines read\n")
end

main()
