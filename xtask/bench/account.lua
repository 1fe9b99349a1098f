-- Questions that never repeat: every thread counts, and the counter moves all three numbers.
local thread_count = 0
function setup(thread)
  thread:set("id", thread_count)
  thread_count = thread_count + 1
end

local number = 0
local failed = 0
local quantities = os.getenv("QUANTITIES") or '"epsilon"'
local kind = { ["Content-Type"] = "application/json" }

function request()
  number = number + 1
  local noise = 0.8 + ((number * 0.6180339887) % 1) * 1.2
  local rate = 0.005 + ((number * 0.7548776662 + id * 0.37) % 1) * 0.02
  local steps = 500 + ((number * 7919 + id * 104729) % 9500)
  local body = string.format(
    '{"run":{"noise_multiplier":%.12f,"sample_rate":%.12f,"steps":%d},"delta":1e-5,"lens":["composition","last-iterate"],"quantity":[%s]}',
    noise, rate, steps, quantities)
  return wrk.format("POST", "/api/account", kind, body)
end

function done(summary, latency)
  io.write(string.format(
    "requests %d seconds %.3f errors %d p50 %.2f p99 %.2f\n",
    summary.requests, summary.duration / 1e6,
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
