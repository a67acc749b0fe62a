mod documents;
mod fuzz_smoke;
mod hostile;
mod methods;
mod operations;
mod readings;
mod requests;
mod suite;
