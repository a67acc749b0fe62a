//! The room on the volume that events leave to what must not be lost.

use std::path::Path;

/// What stays free, in bytes; of a small volume an eighth.
const RESERVE: u64 = 64 << 20;

/// Whether so little is free on the volume of `path` that no event may be added. What cannot be found out forbids nothing.
pub(super) fn is_short(path: &Path) -> bool {
    let Ok(volume) = rustix::fs::statvfs(path) else { return false };
    let size = volume.f_blocks.saturating_mul(volume.f_frsize);
    let free = volume.f_bavail.saturating_mul(volume.f_frsize);
    free < RESERVE.min(size / 8)
}
