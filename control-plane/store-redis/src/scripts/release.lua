-- Gives the lease back. KEYS: lease. ARGV: the control plane.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
