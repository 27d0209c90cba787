-- Prints wrk's counts as one line of JSON: `wrk -s report.lua`. Other scripts load it as well.
-- errors.status counts responses above 399.
function done(summary)
  local e = summary.errors
  io.write(string.format(
    '\nREPORT {"requests": %d, "microseconds": %d, "bytes": %d, "refused": %d, "socket_errors": %d}\n',
    summary.requests, summary.duration, summary.bytes,
    e.status, e.connect + e.read + e.write + e.timeout))
end
