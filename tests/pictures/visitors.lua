-- SPDX-License-Identifier: MIT
-- What wrk asks the shop for: products, searches and carts in turn.
local count = 0
local words = { "lamp", "blue+chair", "green", "best+mirror" }

local function order()
  local items = {}
  for i = 1, 40 do items[i] = ('{"id":%d,"count":%d}'):format((count * i) % 200 + 1, i * 3) end
  return ('{"customer":%d,"items":[%s]}'):format(count % 100, table.concat(items, ","))
end

-- wrk calls it for each request.
function request()
  count = count + 1
  local turn = count % 4
  if turn == 0 then return wrk.format("GET", "/search?q=" .. words[count / 4 % #words + 1]) end
  if turn % 2 == 0 then return wrk.format("POST", "/cart", nil, order()) end
  return wrk.format("GET", "/product?id=" .. count % 200 + 1)
end
