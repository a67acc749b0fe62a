//! Windows, counters and bans that all workers of a node share: a fixed number of shards with expiry over the host's shared data
