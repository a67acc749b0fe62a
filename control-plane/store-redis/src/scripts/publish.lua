-- Makes a change, if the server is where its maker believes, and notes which rows it has changed.
-- KEYS: head, lease, turn, log, and the hash of each table.
-- ARGV: the control plane, the version and token that it has seen, the new token, the milliseconds for which the lease goes on,
-- the schema, the entries and the keys of one entry that the log keeps, and the rows: for each table its number, the keys that
-- are gone, and keys with their columns.
-- Answers: ok, version, whether another control plane waits | busy | moved | emptied | schema, the server's.
local head = redis.call('HMGET', KEYS[1], 'version', 'token', 'schema')
local version, token = head[1] or '0', head[2] or ''
if token == ARGV[4] then
  -- Sent for the second time, because the first answer was lost.
  return {'ok', version, 0}
end
if version == '0' and ARGV[2] ~= '0' then
  return {'emptied'}
end
if head[3] and head[3] ~= ARGV[6] then
  return {'schema', head[3]}
end
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[1] then
  return {'busy'}
end
if version ~= ARGV[2] or token ~= ARGV[3] then
  return {'moved'}
end

local parts, named, room = cmsgpack.unpack(ARGV[9]), {}, tonumber(ARGV[8])
local function write(command, key, list, stride)
  for first = 1, #list, 1000 do
    redis.call(command, key, unpack(list, first, math.min(first + 999, #list)))
  end
  room = room - #list / stride
end
for _, part in ipairs(parts) do
  local number, gone, rows = part[1], part[2], part[3]
  write('HDEL', KEYS[5 + number], gone, 1)
  write('HSET', KEYS[5 + number], rows, 2)
  if room >= 0 then
    for _, key in ipairs(gone) do
      named[#named + 1] = number
      named[#named + 1] = key
    end
    for at = 1, #rows, 2 do
      named[#named + 1] = number
      named[#named + 1] = rows[at]
    end
  end
end

version = redis.call('HINCRBY', KEYS[1], 'version', 1)
redis.call('HSET', KEYS[1], 'token', ARGV[4], 'schema', ARGV[6])
-- With more keys than the log keeps, replicas read everything anew.
local keys = room >= 0 and cmsgpack.pack(named) or ''
redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[7], string.format('%.0f-0', version), 'before', token, 'keys', keys)

local waiting = redis.call('EXISTS', KEYS[3])
if waiting == 1 then
  redis.call('DEL', KEYS[2])
else
  redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[5])
end
return {'ok', version, waiting}
