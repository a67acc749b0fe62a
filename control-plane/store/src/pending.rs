//! What every operation of a store answers with.

use std::future::Future;
use std::pin::Pin;

use super::StoreError;

/// The answer of a store operation, to be awaited.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;
