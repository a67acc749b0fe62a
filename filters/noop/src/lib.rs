//! A filter that does nothing: the yardstick of the benchmarks
