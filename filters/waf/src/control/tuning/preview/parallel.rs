//! Work on several threads.

use std::thread::scope;

/// The results of all jobs, in their order. A panic of one is that of the caller.
pub(super) fn each<J: Sync, R: Send>(threads: usize, jobs: &[J], work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    // A thread costs more than a few attacks.
    let threads = threads.min(jobs.len() / FEW).max(1);
    let work = &work;
    if threads == 1 {
        return jobs.iter().map(work).collect();
    }
    scope(|scope| {
        let parts = jobs.chunks(jobs.len().div_ceil(threads));
        let started: Vec<_> =
            parts.map(|part| scope.spawn(move || part.iter().map(work).collect::<Vec<R>>())).collect();
        let done = started.into_iter().map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        done.flatten().collect()
    })
}

/// The least jobs of a thread.
const FEW: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_their_jobs() {
        for count in [0, 1, 15, 16, 33, 1000] {
            let jobs: Vec<usize> = (0..count).collect();
            for threads in [1, 2, 3, 64] {
                let found = each(threads, &jobs, |job| job * 2);
                assert!(found.iter().copied().eq(jobs.iter().map(|job| job * 2)), "{count} on {threads}");
            }
        }
    }
}
