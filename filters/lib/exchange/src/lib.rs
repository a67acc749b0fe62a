//! One request and its response as plugins see it: views, identity, signals, score, decision, the Plugin and Host traits, the chain
