use super::*;

const ALL: Bounds = Bounds { lines: usize::MAX, bytes: usize::MAX };

fn queue(lines: usize, bytes: usize, content: &[&str]) -> Queue {
    let queue = Queue::new("test".to_owned(), Bounds { lines, bytes });
    for line in content {
        queue.push(line.as_bytes().into());
    }
    queue
}

fn texts(lines: &[Line]) -> Vec<&str> {
    lines.iter().map(|line| std::str::from_utf8(line).unwrap()).collect()
}

#[tokio::test]
async fn the_oldest_go_first_and_are_counted() {
    let queue = queue(2, 100, &["1", "2", "3"]);
    let lines = queue.take(ALL).await;
    assert_eq!(texts(&lines), ["2", "3"]);
    assert_eq!(queue.figures().waiting, 2, "taken is not written");
    queue.settle(Settled { written: 2, ..Settled::default() });
    assert_eq!(queue.figures(), Figures { written: 2, dropped: 1, ..Figures::default() });
    queue.drained().await;
}

#[tokio::test]
async fn what_is_finished_is_written_or_lost() {
    let queue = queue(2, 100, &["1", "2", "3"]);
    assert_eq!((queue.pushed(), queue.finished()), (3, 1), "the oldest is lost");
    let back = queue.take(ALL).await;
    assert_eq!(queue.finished(), 1, "taken is not written");
    queue.settle(Settled { back, ..Settled::default() });
    queue.push("4".as_bytes().into());
    assert_eq!((queue.pushed(), queue.finished()), (4, 2));
    let lines = queue.take(ALL).await;
    queue.settle(Settled { written: lines.len(), ..Settled::default() });
    assert_eq!(queue.finished(), 4);
}

#[tokio::test]
async fn bytes_are_bounded_too_and_one_long_line_still_fits() {
    let queue = queue(100, 10, &["aaaa", "bbbb", "cccc", "a line beyond the bound"]);
    assert_eq!(texts(&queue.take(ALL).await), ["a line beyond the bound"]);
    assert_eq!(queue.figures().dropped, 3);
}

#[tokio::test]
async fn a_batch_has_its_own_bounds() {
    let queue = queue(100, 1000, &["aaaa", "bbbb", "cccccccc", "d"]);
    for expected in [vec!["aaaa"], vec!["bbbb"], vec!["cccccccc"], vec!["d"]] {
        let lines = queue.take(Bounds { lines: 100, bytes: 7 }).await;
        assert_eq!(texts(&lines), expected);
    }
    for line in ["1", "2", "3"] {
        queue.push(line.as_bytes().into());
    }
    assert_eq!(texts(&queue.take(Bounds { lines: 2, bytes: 100 }).await), ["1", "2"]);
}

#[tokio::test]
async fn what_comes_back_is_the_oldest_again() {
    let queue = queue(3, 100, &["1", "2"]);
    let back = queue.take(ALL).await;
    queue.push("3".as_bytes().into());
    queue.push("4".as_bytes().into());
    queue.settle(Settled { back, error: Some("no".to_owned()), ..Settled::default() });
    let expected = Figures { waiting: 3, dropped: 1, retries: 1, error: Some("no".to_owned()), ..Figures::default() };
    assert_eq!(queue.figures(), expected);
    assert_eq!(texts(&queue.take(ALL).await), ["2", "3", "4"]);
}
