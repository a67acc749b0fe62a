-- Takes the lease, where one is wanted, and answers what a replica at a given change lacks.
-- KEYS: head, lease, turn, log, and the hash of each table.
-- ARGV: the control plane, the milliseconds of the lease (0: none), the replica's version and token, the most rows to answer, the
-- schema.
-- Answers: emptied | schema, the server's | busy | current | reload | diverged | changes, version, token, rows (table, key, columns or
-- nil).
local head = redis.call('HMGET', KEYS[1], 'version', 'token', 'schema')
local version, token, schema = head[1] or '0', head[2] or '', head[3] or ''

if version == '0' and ARGV[3] ~= '0' then
  return {'emptied'}
end
-- Before the lease is taken: a control plane that cannot write keeps no other one from it.
if schema ~= '' and schema ~= ARGV[6] then
  return {'schema', schema}
end
if tonumber(ARGV[2]) > 0 then
  local holder, turn = redis.call('GET', KEYS[2]), redis.call('GET', KEYS[3])
  if (holder and holder ~= ARGV[1]) or (turn and turn ~= ARGV[1]) then
    -- The one that waits longest is the next: the holder sees it when it publishes.
    if not turn then
      -- A server without memory allows a script whose first write frees some: to wait there must be no error.
      redis.call('DEL', KEYS[3])
      redis.call('SET', KEYS[3], ARGV[1], 'PX', 200)
    end
    return {'busy'}
  end
  -- As above: rows can be removed then.
  redis.call('DEL', KEYS[2], KEYS[3])
  redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
end

if version == ARGV[3] and token == ARGV[4] then
  return {'current'}
end
local reload = {'reload'}
local from, missed = tonumber(ARGV[3]), tonumber(version) - tonumber(ARGV[3])
if from == 0 then
  return reload
end
local first = string.format('%.0f-0', from + 1)
local after = redis.call('XRANGE', KEYS[4], first, first)
-- Another history since a failover, or since the server was started on older data.
if missed <= 0 or (after[1] and after[1][2][2] ~= ARGV[4]) then
  return {'diverged'}
end
if missed > 2000 then
  return reload
end
local entries = redis.call('XRANGE', KEYS[4], first, '+')
-- Entries that were dropped.
if #entries ~= missed then
  return reload
end

local seen, fields, most = {}, {}, tonumber(ARGV[5])
for _, entry in ipairs(entries) do
  local named = entry[2][4]
  if named == '' then
    return reload
  end
  local keys = cmsgpack.unpack(named)
  for at = 1, #keys, 2 do
    local part, key = keys[at], keys[at + 1]
    seen[part] = seen[part] or {}
    if not seen[part][key] then
      seen[part][key] = true
      fields[part] = fields[part] or {}
      table.insert(fields[part], key)
      most = most - 1
    end
  end
  if most < 0 then
    return reload
  end
end

local rows = {}
for part, keys in pairs(fields) do
  for first = 1, #keys, 1000 do
    local last = math.min(first + 999, #keys)
    local values = redis.call('HMGET', KEYS[5 + part], unpack(keys, first, last))
    for at = first, last do
      rows[#rows + 1] = part
      rows[#rows + 1] = keys[at]
      rows[#rows + 1] = values[at - first + 1]
    end
  end
end
return {'changes', version, token, rows}
