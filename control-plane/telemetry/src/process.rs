//! What the operating system knows of this process.

use std::fs;

/// Sets the gauges of the process. What the system does not tell is left out.
pub(super) fn measure() {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(kib) = field(&status, "VmRSS:") {
        metrics::gauge!("palisade_process_resident_memory_bytes").set(kib * 1024.0);
    }
    if let Some(threads) = field(&status, "Threads:") {
        metrics::gauge!("palisade_process_threads").set(threads);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        let open = u32::try_from(open.count()).unwrap_or(u32::MAX);
        metrics::gauge!("palisade_process_open_fds").set(open);
    }
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    if let Some(most) = field(&limits, "Max open files") {
        metrics::gauge!("palisade_process_max_fds").set(most);
    }
}

/// The first number behind `name`.
fn field(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_names() {
        let text =
            "VmPeak:\t  9 kB\nVmRSS:\t    1234 kB\nMax open files            1024                 4096     files\n";
        assert_eq!((field(text, "VmRSS:"), field(text, "Max open files")), (Some(1234.0), Some(1024.0)));
        assert_eq!((field(text, "Threads:"), field("Max open files unlimited", "Max open files")), (None, None));
    }
}
