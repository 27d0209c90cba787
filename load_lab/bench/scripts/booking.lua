-- Bookings that never conflict: request n takes suite n of the list, in turn, and after each round
-- the next night, each with a new Idempotency-Key. k6's bookings do the same.
-- Format of the file BENCH_SLOTS: the first night (days since 1970-01-01), a prefix for keys, then
-- a line per suite with its id and the customers' ids.
dofile(os.getenv("BENCH_REPORT"))

local suites, first_night, prefix, n = {}, 0, "", 0

function init()
  local file = assert(io.open(os.getenv("BENCH_SLOTS")))
  first_night = tonumber(file:read("*l"))
  prefix = file:read("*l")
  for line in file:lines() do
    local suite, customers = line:match("^(%S+) (.+)$")
    suites[#suites + 1] = { id = suite, customers = '"' .. customers:gsub(" ", '","') .. '"' }
  end
  file:close()
end

local function date(day)
  return os.date("!%Y-%m-%d", day * 86400)
end

function request()
  local suite = suites[n % #suites + 1]
  local night = first_night + math.floor(n / #suites)
  local body = string.format(
    '{"suite":"%s","check_in":"%s","check_out":"%s","customers":[%s]}',
    suite.id, date(night), date(night + 1), suite.customers)
  local headers = {
    ["Content-Type"] = "application/json",
    ["Idempotency-Key"] = prefix .. n,
  }
  n = n + 1
  return wrk.format("POST", nil, headers, body)
end
