mod documents;
mod fuzz_smoke;
mod hostile;
mod operations;
mod requests;
mod suite;
