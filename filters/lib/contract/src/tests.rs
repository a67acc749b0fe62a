mod operations;
mod suite;
