use super::super::{Figures, Settled};
use super::*;

const ALL: Bounds = Bounds { lines: usize::MAX, bytes: 1 << 20 };

struct Set {
    folder: tempfile::TempDir,
    queue: Arc<Queue>,
}

impl Set {
    /// A queue for eight lines, and a task that moves them.
    fn new() -> Set {
        Set::at(tempfile::tempdir().unwrap(), 1 << 20)
    }

    fn at(folder: tempfile::TempDir, max_bytes: u64) -> Set {
        let disk = Disk::open(folder.path(), max_bytes).unwrap();
        let queue = Queue::new("test".to_owned(), Bounds { lines: 8, bytes: 1 << 20 }).with_disk(disk);
        let queue = Arc::new(queue);
        tokio::spawn(Arc::clone(&queue).spill());
        Set { folder, queue }
    }

    fn push(&self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            self.queue.push(number.to_string().as_bytes().into());
        }
    }

    /// Pushes no faster than the disk can take it.
    async fn push_slowly(&self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            self.push(number..number + 1);
            while self.queue.lock().is_crowded(self.queue.bounds) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    /// Waits until no line is on its way to the disk; how many are there.
    async fn on_disk(&self) -> usize {
        while self.queue.lock().moving > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.queue.figures().on_disk
    }

    /// The file that is read.
    fn oldest_file(&self) -> std::path::PathBuf {
        let paths = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).min().unwrap()
    }

    async fn take(&self, most: usize) -> Vec<u32> {
        self.queue.take(Bounds { lines: most, ..ALL }).await.iter().map(number).collect()
    }

    /// Takes and settles until nothing waits.
    async fn all(&self) -> Vec<u32> {
        let mut all = Vec::new();
        while self.queue.figures().waiting > 0 {
            let taken = self.take(7).await;
            self.queue.settle(Settled { written: taken.len(), ..Settled::default() });
            all.extend(taken);
        }
        all
    }

    /// The next process.
    async fn restart(self, max_bytes: u64) -> Set {
        let Set { folder, queue } = self;
        // The task that moves lines holds the queue as long as the runtime lives.
        let path = folder.path().join("lock");
        std::fs::remove_file(path).unwrap();
        drop(queue);
        Set::at(folder, max_bytes)
    }
}

fn number(line: &Line) -> u32 {
    std::str::from_utf8(line).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_slow_exporter_loses_nothing_and_the_order_stays() {
    let set = Set::new();
    set.push_slowly(0..100).await;
    let figures = set.queue.figures();
    assert_eq!((figures.waiting, figures.dropped), (100, 0));
    assert!(figures.on_disk > 80, "{figures:?}");
    assert_eq!(set.queue.finished(), set.queue.pushed() - set.queue.lock().lines.len() as u64, "those on disk last");
    // While it is read, more comes.
    let first = set.take(5).await;
    set.queue.settle(Settled { written: 5, ..Settled::default() });
    set.push_slowly(100..150).await;
    assert_eq!([first, set.all().await].concat(), Vec::from_iter(0..150));
    set.queue.drained().await;
    let figures = set.queue.figures();
    assert_eq!(figures, Figures { written: 150, ..Figures::default() });
}

#[tokio::test]
async fn what_came_back_from_the_exporter_is_first_again() {
    let set = Set::new();
    set.push_slowly(0..50).await;
    let taken = set.queue.take(Bounds { lines: 4, ..ALL }).await;
    let back = taken[1..].to_vec();
    set.queue.settle(Settled { written: 1, back, ..Settled::default() });
    assert_eq!(set.take(2).await, [1, 2]);
    set.queue.settle(Settled { written: 2, ..Settled::default() });
    assert_eq!(set.all().await, Vec::from_iter(3..50));
    assert_eq!(set.queue.figures().retries, 1);
}

#[tokio::test]
async fn what_waits_at_the_end_is_there_in_the_next_process() {
    let set = Set::new();
    set.push_slowly(0..30).await;
    assert_eq!(set.take(3).await, [0, 1, 2]);
    set.queue.settle(Settled { written: 3, ..Settled::default() });
    // Under way when the process ends: sent again.
    assert_eq!(set.take(2).await, [3, 4]);
    assert_eq!(set.queue.keep().await, Kept { on_disk: 27, lost: 0 });
    assert_eq!(set.queue.finished(), set.queue.pushed(), "nothing depends on this process any more");
    let set = set.restart(1 << 20).await;
    assert_eq!((set.queue.pushed(), set.queue.figures().waiting), (27, 27));
    set.push_slowly(30..40).await;
    assert_eq!(set.all().await, Vec::from_iter(3..40));
    assert_eq!(set.queue.keep().await, Kept::default());
    let set = set.restart(1 << 20).await;
    assert_eq!(set.queue.figures().waiting, 0);
}

#[tokio::test]
async fn lines_that_were_taken_from_memory_are_kept_before_those_on_disk() {
    let set = Set::new();
    set.push(0..3);
    assert_eq!(set.take(2).await, [0, 1]);
    set.push_slowly(3..30).await;
    assert_eq!(set.queue.finished(), 0, "the oldest are only here");
    assert_eq!(set.queue.keep().await, Kept { on_disk: 30, lost: 0 });
    let set = set.restart(1 << 20).await;
    assert_eq!(set.all().await, Vec::from_iter(0..30));
}

#[tokio::test]
async fn a_full_disk_lets_the_oldest_go_and_counts_them() {
    let set = Set::at(tempfile::tempdir().unwrap(), 400);
    set.push_slowly(1000..1500).await;
    let figures = set.queue.figures();
    assert!(figures.on_disk <= 80 && figures.dropped > 400, "{figures:?}");
    let all = set.all().await;
    assert_eq!(all, Vec::from_iter(1500 - all.len() as u32..1500));
    assert_eq!(all.len() as u64 + figures.dropped, 500);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_cannot_be_written_costs_only_what_has_no_room_in_memory() {
    let set = Set::new();
    std::fs::remove_dir_all(set.folder.path()).unwrap();
    set.push(0..7);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let figures = set.queue.figures();
    assert_eq!((figures.waiting, figures.on_disk, figures.dropped), (7, 0, 0));
    assert!(figures.disk_error.is_some());
    set.push(7..20);
    assert_eq!(set.queue.figures().dropped, 12);
    // It can be written again.
    std::fs::create_dir_all(set.folder.path()).unwrap();
    while set.queue.figures().on_disk == 0 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(set.queue.figures().disk_error, None);
    assert_eq!(set.all().await, Vec::from_iter(12..20));
}

/// The server is away, and then the disk is full.
#[tokio::test]
async fn a_batch_from_the_disk_stays_where_the_memory_is_full() {
    let set = Set::new();
    set.push_slowly(0..20).await;
    let count = set.on_disk().await;
    let back = set.queue.take(ALL).await;
    assert_eq!((back.len(), set.queue.figures().on_disk), (count, 0));
    std::fs::remove_dir_all(set.folder.path()).unwrap();
    set.queue.settle(Settled { back, error: Some("down".to_owned()), ..Settled::default() });
    set.push(20..50);
    let figures = set.queue.figures();
    assert_eq!((figures.waiting, figures.dropped), (count + 8, 42 - count as u64), "{figures:?}");
    assert_eq!(set.take(100).await, Vec::from_iter(0..count as u32));
    set.queue.settle(Settled { written: count, ..Settled::default() });
    assert_eq!(set.all().await, Vec::from_iter(42..50));
}

#[tokio::test]
async fn a_file_that_is_lost_keeps_nothing_from_what_is_in_memory() {
    let set = Set::new();
    set.push_slowly(0..20).await;
    let count = set.on_disk().await;
    assert_eq!(set.take(2).await, [0, 1]);
    set.queue.settle(Settled { written: 2, ..Settled::default() });
    std::fs::remove_file(set.oldest_file()).unwrap();
    let rest = tokio::time::timeout(Duration::from_secs(60), set.all()).await.unwrap();
    assert_eq!(rest, Vec::from_iter(count as u32..20));
    assert_eq!(set.queue.figures().dropped, count as u64 - 2);
}

#[tokio::test]
async fn a_file_that_cannot_be_removed_costs_nothing_at_the_end() {
    let set = Set::new();
    set.push_slowly(0..20).await;
    let count = set.on_disk().await;
    let taken = set.queue.take(ALL).await;
    set.queue.settle(Settled { written: taken.len(), ..Settled::default() });
    // A folder in its place.
    let oldest = set.oldest_file();
    std::fs::remove_file(&oldest).unwrap();
    std::fs::create_dir(&oldest).unwrap();
    assert_eq!(set.queue.keep().await, Kept { on_disk: 20 - count, lost: 0 });
}

#[tokio::test]
async fn without_a_disk_what_waits_at_the_end_is_lost() {
    let queue = Queue::new("test".to_owned(), ALL);
    queue.push("1".as_bytes().into());
    queue.push("2".as_bytes().into());
    queue.take(Bounds { lines: 1, ..ALL }).await;
    assert_eq!(queue.keep().await, Kept { on_disk: 0, lost: 2 });
}
