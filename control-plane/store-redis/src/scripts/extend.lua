-- Makes the lease last longer, if it is still this control plane's. KEYS: lease. ARGV: the control plane, milliseconds.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
