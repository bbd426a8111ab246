-- SPDX-License-Identifier: MIT
-- A small shop for nginx's Lua module, to take pictures of: pages from templates, a search by a coroutine, carts as
-- JSON in a shared dictionary, and a timer that ranks what sells.
local cjson = require("cjson")

local PRODUCTS = 200
local FOUND_MAX = 40
local COMPARED = 150
local PAGE_CACHE_S = 0.02
local RANK_EVERY_S = 0.05

local shop = {}
local products, sold = {}, {}

-- ---- Templates ---------------------------------------------------------------------------------

local entities = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }

local function escape(value)
  return (tostring(value):gsub('[&<>"]', entities))
end

-- A template becomes a function: {{ an expression }} is escaped, {% a statement %} runs.
local function compile(name, template)
  local code, rest = { "local page, escape = ... local out = {} " }, 1
  for text, kind, inner, after in template:gmatch("(.-){([{%%])%s*(.-)%s*[}%%]}()") do
    code[#code + 1] = ("out[#out + 1] = %q "):format(text)
    code[#code + 1] = (kind == "{" and "out[#out + 1] = escape(%s) " or "%s "):format(inner)
    rest = after
  end
  code[#code + 1] = ("out[#out + 1] = %q return table.concat(out)"):format(template:sub(rest))
  return assert(loadstring(table.concat(code), "=" .. name))
end

local product_page = compile("product.html", [[
<h1>{{ page.title }}</h1>
<p>{% out[#out + 1] = page.html %}</p>
<ul>{% for _, tag in ipairs(page.tags) do %}
  <li>{{ tag }}</li>{% end %}
</ul>
<p>{{ ("%.2f"):format(page.price) }}, {{ page.stock }} in stock</p>
<p>See also: {{ page.similar.title }}</p>
]])

local results_page = compile("results.html", [[
<h1>{{ page.title }}</h1>
<table>{% for i, product in ipairs(page.found) do %}
  <tr><td>{{ i }}</td><td>{{ product.title }}</td><td>{{ ("%.2f"):format(product.price) }}</td></tr>{% end %}
</table>
]])

local layout = "<!doctype html>\n<html><head><title>%s</title></head>\n<body>\n%s</body></html>\n"

local function render(template, page)
  return layout:format(escape(page.title), template(page, escape))
end

-- ---- Products ----------------------------------------------------------------------------------

local function tags_of(id)
  local tags = {}
  for i = 1, 6 do tags[i] = ("tag-%d & more"):format((id * i) % 17) end
  return tags
end

local colours = { "red", "green", "blue", "grey" }
local kinds = { "lamp", "chair", "table", "shelf", "clock", "vase", "mirror" }

local function make_products()
  for id = 1, PRODUCTS do
    local name = colours[id % #colours + 1] .. " " .. kinds[id % #kinds + 1]
    products[id] = { id = id, title = name, price = 5 + id % 40, stock = id % 9, tags = tags_of(id),
      text = ("A *%s* of the _best_ kind, no. %d. "):format(name, id):rep(8) }
    sold[id] = 0
  end
end

local function read_product(id)
  local cached = ngx.shared.pages:get(id)
  if cached then return cjson.decode(cached) end
  ngx.shared.pages:set(id, cjson.encode(products[id]), PAGE_CACHE_S)
  return products[id]
end

-- ---- Product pages -----------------------------------------------------------------------------

local function format_text(text)
  return (escape(text):gsub("%*(.-)%*", "<b>%1</b>"):gsub("_(.-)_", "<i>%1</i>"))
end

-- How much two products have in common.
local function similarity(a, b)
  local points = math.abs(a.price - b.price) < 5 and 1 or 0
  for i = 1, #a.tags do
    for j = 1, #b.tags do points = points + (a.tags[i] == b.tags[j] and 1 or 0) end
  end
  return points
end

local function find_similar(product)
  local best, most = nil, -1
  for step = 1, COMPARED do
    local other = products[(product.id + step) % PRODUCTS + 1]
    local points = similarity(product, other)
    if points > most then best, most = other, points end
  end
  return best
end

local function show_product()
  local product = read_product(tonumber(ngx.var.arg_id) or 1)
  local page = { html = format_text(product.text), similar = find_similar(product) }
  ngx.print(render(product_page, setmetatable(page, { __index = product })))
end

-- ---- Search ------------------------------------------------------------------------------------

local function score(product, words)
  local text, points = product.text:lower(), 0
  for _, word in ipairs(words) do
    local at = 0
    repeat
      at = text:find(word, at + 1, true)
      points = points + (at and 1 or 0)
    until not at
  end
  return points
end

-- A coroutine: hands out one match at a time.
function shop.find_matches(words)
  for id = 1, PRODUCTS do
    local points = score(products[id], words)
    if points > 0 then coroutine.yield({ product = products[id], points = points }) end
  end
end

local function by_points(a, b)
  if a.points ~= b.points then return a.points > b.points end
  return a.product.id < b.product.id
end

local function split(query)
  local words = {}
  for word in query:gmatch("%w+") do words[#words + 1] = word:lower() end
  return words
end

local function search()
  local query, matches, found = ngx.unescape_uri(ngx.var.arg_q or ""), {}, {}
  local next_match = coroutine.wrap(shop.find_matches)
  local match = next_match(split(query))
  while match do
    matches[#matches + 1] = match
    match = next_match()
  end
  table.sort(matches, by_points)
  for i = 1, math.min(#matches, FOUND_MAX) do found[i] = matches[i].product end
  ngx.print(render(results_page, { title = query, found = found }))
end

-- ---- Carts -------------------------------------------------------------------------------------

local function add_up(items)
  local sum = 0
  for _, item in ipairs(items) do
    local price = products[item.id].price
    -- The more of it, the cheaper each.
    for n = 1, item.count do sum = sum + price * (1 - math.min(n, 20) / 100) end
    sold[item.id] = sold[item.id] + item.count
  end
  return sum
end

local function put_in_cart()
  ngx.req.read_body()
  local order = cjson.decode(ngx.req.get_body_data())
  order.sum = add_up(order.items)
  local text = cjson.encode(order)
  ngx.shared.carts:set(order.customer, text)
  ngx.print(text)
end

-- ---- Ranks -------------------------------------------------------------------------------------

local function by_sales(a, b)
  return sold[a] > sold[b] or sold[a] == sold[b] and a < b
end

local function rank()
  local ids = {}
  for id = 1, PRODUCTS do ids[id] = id end
  table.sort(ids, by_sales)
  ngx.shared.pages:set("ranks", cjson.encode(ids))
end

-- ---- For nginx ---------------------------------------------------------------------------------

local pages = { product = show_product, search = search, cart = put_in_cart }

function shop.start()
  make_products()
  assert(ngx.timer.every(RANK_EVERY_S, rank))
end

function shop.serve()
  local show = pages[ngx.var.uri:sub(2)]
  if not show then return ngx.exit(ngx.HTTP_NOT_FOUND) end
  show()
end

return shop
