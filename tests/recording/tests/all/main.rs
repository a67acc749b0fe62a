//! The tests of recordings from outside, but for those that count allocations in a process of their own.

mod applications;
mod formats;
mod order;
mod readme;
mod robustness;
mod written;
