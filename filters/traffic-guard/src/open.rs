//! The surges that a worker has seen, whose end it looks for without waiting for a request.

use std::cell::RefCell;

use exchange::Route;

use crate::messages::Dimension;

/// The most of them. The end of another one is told with its next request.
const MAX_OPEN: usize = 64;

/// A surge.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) dimension: Dimension,
    pub(crate) key: String,
    /// The route of the request that was seen in it.
    pub(crate) route: Route,
    /// The bucket in which it was looked at last.
    bucket: u64,
}

#[derive(Debug, Default)]
pub(crate) struct OpenSurges(RefCell<Vec<Open>>);

impl OpenSurges {
    /// Notes a request in a surge.
    pub(crate) fn note(&self, bucket: u64, (dimension, key): (Dimension, &str), route: &Route) {
        let Ok(mut list) = self.0.try_borrow_mut() else { return };
        let known = list.iter().any(|open| open.dimension == dimension && open.key == key);
        if !known && list.len() < MAX_OPEN {
            list.push(Open { dimension, key: key.to_owned(), route: route.clone(), bucket });
        }
    }

    /// Calls `still` with each surge that was not looked at in this bucket; those of which it says no are over.
    pub(crate) fn look(&self, bucket: u64, mut still: impl FnMut(&Open) -> bool) {
        let Ok(mut list) = self.0.try_borrow_mut() else { return };
        list.retain_mut(|open| {
            let is_new = open.bucket != bucket;
            open.bucket = bucket;
            !is_new || still(open)
        });
    }
}
