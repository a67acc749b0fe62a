//! The Palisade control plane.
