mod documents;
mod fuzz_smoke;
mod hostile;
mod operations;
mod readings;
mod requests;
mod suite;
