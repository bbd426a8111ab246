-- The cases: steps and leaves of each, and `most` steps of its own in one scenario. `whole` is the
-- percentage of samples that have a full chain, 99 without it, and `whole_slow` the same under the
-- sanitizers; `lua` is that of samples that are full or have all of Lua, for cases whose chains
-- cannot be full; `drop` leaves the functions of a scenario to the collector, so that their
-- addresses are used again; `needs` is a library without which the case is left out.
local all = { "index", "newindex", "add", "sub", "mul", "mod", "pow", "unm", "len", "concat",
  "call", "lt", "le", "concat_many", "eq", "le_by_lt", "index_number" }
for i, event in ipairs(all) do all[i] = "meta_" .. event end

-- Everything that may be nested in itself and in the rest.
local mixed = { "call", "pcall", "xpcall", "c_call", "c_pcall", "c_nested", "gsub", "sort",
  "gmatch", "iterator", "foreach", "foreachi", "tostring", "cpcall", "c_load", "load", "vararg",
  "vararg_tail", "tail", "tail_c", "tail_pcall", "error", "error_runtime", "error_through_c",
  "error_c_pcall", "error_coroutine", "error_wrap", "resume", "wrap", "c_resume", "dead",
  "suspended", "yield_pcall", "yield_xpcall", "yield_meta", "yield_iterator", "yield_c",
  "yield_lua_by_c", "other", "back" }
for _, name in ipairs(all) do mixed[#mixed + 1] = name end

return {
  mixed = { steps = mixed, most = 12,
    leaves = { "spin", "floor", "modulo", "pow", "tiny_pcall", "tiny_wrap", "tiny_meta",
      "tiny_tail" } },
  vms = { steps = { "other", "back" }, most = 5 },
  vm_thread = { steps = { "thread" }, most = 1 },
  vms_threads = { steps = { "other", "call" }, threads = 3 },
  -- A VM lives for 1 to 3 ms. The stop copies of it what the sample before told; what is still
  -- missing is read while the program goes on, and a recorder several times slower comes too late
  -- for that more often: 1.1 % of 11,000 samples under the sanitizers, 0.4 % of 2,700 else.
  vm_fresh = { steps = { "fresh" }, most = 2, whole_slow = 98 },
  helpers = { leaves = { "floor", "modulo", "pow", "minmax" } },
  entries = { leaves = { "tiny_pcall", "tiny_xpcall", "tiny_c", "tiny_lua_call", "tiny_wrap",
    "tiny_call", "tiny_sort", "tiny_resume", "tiny_vararg", "tiny_tail", "tiny_meta" } },
  unwinding = { leaves = { "tiny_error", "tiny_error_c", "tiny_error_wrap", "tiny_error_runtime" } },
  unwinder = { leaves = { "throw_pcall", "throw_deep", "throw_through", "throw_nested",
    "throw_wrap", "throw_catch", "throw_catch_c" } },
  -- While the new part of a stack that has moved is cleared, the coroutine holds the new stack and
  -- the old base, and where the old stack was is in a register of LuaJIT's alone: torn.
  stack_grow = { leaves = { "grow_wrap", "grow_c", "grow_values", "grow_shrink" }, whole = 80 },
  ffi_call = { leaves = { "ffi_spin" } },
  ffi_callback = { steps = { "callback" } },
  hook_lua = { steps = { "hook_count", "hook_line", "hook_call" }, most = 1 },
  hook_c = { steps = { "c_hook_count", "c_hook_line", "c_hook_call" }, most = 1 },
  hooked = { leaves = { "hooked_count", "hooked_line", "hooked_call", "hooked_by_c" } },
  gc_collect = { steps = { "gc_collect" }, most = 1, drop = true },
  gc_allocate = { steps = { "gc_allocate", "gc_concat", "gc_closure" }, most = 1, drop = true },
  gc_ffi = { steps = { "ffi_gc" }, most = 1, drop = true },
  errors = { steps = { "error", "error_runtime", "error_through_c", "error_c_pcall",
    "error_coroutine",
    "error_wrap" } },
  xpcall_handler = { steps = { "handler_error", "handler_runtime", "handler_arith",
    "handler_call" }, most = 1 },
  cpcall = { steps = { "cpcall", "c_load", "load", "c_pcall" } },
  metamethods = { steps = all, most = 5 },
  varargs = { steps = { "vararg" }, most = 5 },
  tail_calls = { steps = { "tail", "tail_c", "tail_pcall", "vararg_tail" }, most = 5 },
  callbacks = { steps = { "gsub", "sort", "gmatch", "iterator", "foreach", "foreachi",
    "tostring" } },
  coroutines = { steps = { "resume", "wrap", "dead", "suspended" }, most = 5 },
  coroutine_yield = { steps = { "yield_pcall", "yield_xpcall", "yield_meta", "yield_iterator" } },
  coroutine_c = { steps = { "c_resume", "yield_c", "yield_lua_by_c" } },
  dropped = { steps = { "call", "resume" }, most = 5, drop = true },
  nested_c = { steps = { "c_call", "c_pcall", "c_nested" }, most = 5 },
  -- More frames than a chain keeps, so each of these chains is truncated, and what it lacks is Lua
  -- too: the full ones, a tenth to a fifth, are from between two scenarios, and their share says how
  -- long a scenario is prepared.
  deep_lua = { steps = { "deep_lua" }, most = 1, stay = 6000, whole = 0 },
  deep_native = { steps = { "deep_native" }, most = 1, stay = 6000, whole = 0 },
  context = { steps = { "context" } },
  context_boost = { steps = { "context_boost" }, needs = "libboost_context.so.1.74.0" },
  -- One coroutine on two native stacks. The stop copies the one that runs, so there are fewer C
  -- frames than runs of Lua frames, and none can tell which run is its own: torn. Full chains are from
  -- between two scenarios, as above.
  context_same = { steps = { "context_same" }, whole = 0 },
  signal_lua = { leaves = { "signal_lua" } },
  signal_c = { leaves = { "signal_c", "signal_raise" } },
  vdso = { leaves = { "vdso" } },
  plt = { leaves = { "plt_spin" } },
  -- A mark in place of the C functions that cannot be unwound, so that none is full; all of Lua is
  -- there: 99.9 % of 4,000 samples.
  no_unwind_tables = { steps = { "bare" }, leaves = { "spin", "bare_spin" }, whole = 0, lua = 99 },
  frame_pointers = { steps = { "fp" }, leaves = { "spin", "fp_spin" } },
}
