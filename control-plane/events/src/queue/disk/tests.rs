use super::*;

const MAX: u64 = 1 << 20;
const ALL: Bounds = Bounds { lines: usize::MAX, bytes: 1 << 20 };

fn lines(content: &[&str]) -> Vec<Line> {
    content.iter().map(|line| line.as_bytes().into()).collect()
}

fn texts(lines: &[Line]) -> Vec<&str> {
    lines.iter().map(|line| std::str::from_utf8(line).unwrap()).collect()
}

fn two(lines: usize) -> Bounds {
    Bounds { lines, ..ALL }
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(EXTENSION)).collect();
    names.sort();
    names
}

#[test]
fn lines_come_back_in_their_order_also_in_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = Disk::open(folder.path(), MAX).unwrap();
    assert_eq!(disk.append(&lines(&["1", "2", "3"])).unwrap(), 0);
    assert_eq!(texts(&disk.read(two(2)).unwrap()), ["1", "2"]);
    // Not noted: the next process reads them again.
    drop(disk);
    let mut disk = Disk::open(folder.path(), MAX).unwrap();
    assert_eq!(disk.unread(), 3);
    assert_eq!(texts(&disk.read(two(2)).unwrap()), ["1", "2"]);
    disk.commit().unwrap();
    drop(disk);
    let mut disk = Disk::open(folder.path(), MAX).unwrap();
    disk.append(&lines(&["4"])).unwrap();
    assert_eq!(disk.unread(), 2);
    assert_eq!(texts(&disk.read(ALL).unwrap()), ["3", "4"]);
    disk.commit().unwrap();
    assert!(files(folder.path()).is_empty() && disk.read(ALL).unwrap().is_empty());
    assert!(!folder.path().join(POSITION).exists());
}

#[test]
fn what_is_put_first_is_read_first_and_a_batch_has_its_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = Disk::open(folder.path(), MAX).unwrap();
    disk.append(&lines(&["three", "four"])).unwrap();
    disk.prepend(&lines(&["one", "two"])).unwrap();
    drop(disk);
    let mut disk = Disk::open(folder.path(), MAX).unwrap();
    let mut read = Vec::new();
    for most in [Bounds { lines: 10, bytes: 3 }, Bounds { lines: 10, bytes: 2 }, ALL, ALL] {
        read.push(texts(&disk.read(most).unwrap()).join(" "));
        disk.commit().unwrap();
    }
    // A line that is longer than a batch may be stands alone.
    assert_eq!(read, ["one", "two", "three four", ""]);
}

/// The process is killed between the steps of [`Disk::prepend`].
#[test]
fn what_is_put_first_is_there_after_a_kill() {
    for steps in 0..=2 {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = Disk::open(folder.path(), MAX).unwrap();
        disk.append(&lines(&["3", "4"])).unwrap();
        disk.read(two(1)).unwrap();
        disk.commit().unwrap();
        if steps > 0 {
            disk.precede(FIRST - 1).unwrap();
        }
        if steps > 1 {
            disk.write(FIRST - 1, 0, b"1\n2\n").unwrap();
        }
        drop(disk);
        let mut disk = Disk::open(folder.path(), MAX).unwrap();
        let mut first = disk.read(ALL).unwrap();
        disk.commit().unwrap();
        first.extend(disk.read(ALL).unwrap());
        // `3` comes twice: it was exported before.
        let expected: &[&str] = [&["4"] as &[&str], &["3", "4"], &["1", "2", "3", "4"]][steps];
        assert_eq!(texts(&first), expected, "after step {steps}");
    }
}

/// The process is killed after it has removed the last file, and before it removes the position.
#[test]
fn the_position_of_a_file_that_is_gone_hides_no_later_one() {
    for (number, offset) in [(FIRST, 2), (FIRST + 7, 0)] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(POSITION), format!("{number} {offset}\n")).unwrap();
        let mut disk = Disk::open(folder.path(), MAX).unwrap();
        disk.append(&lines(&["1", "2"])).unwrap();
        drop(disk);
        let mut disk = Disk::open(folder.path(), MAX).unwrap();
        assert_eq!(texts(&disk.read(ALL).unwrap()), ["1", "2"], "{number} {offset}");
    }
}

#[test]
fn nothing_is_left_of_a_file_that_had_the_same_number() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = Disk::open(folder.path(), MAX).unwrap();
    fs::write(disk.path(FIRST), "older and longer\nand one more\n").unwrap();
    disk.append(&lines(&["1"])).unwrap();
    drop(disk);
    let mut disk = Disk::open(folder.path(), MAX).unwrap();
    assert_eq!(texts(&disk.read(ALL).unwrap()), ["1"]);
}

#[test]
fn the_oldest_files_go_where_there_is_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = Disk::open(folder.path(), 800).unwrap();
    let (mut appended, mut lost) = (0, 0);
    for number in 0..100 {
        lost += disk.append(&lines(&[&format!("{number:020}")])).unwrap();
        appended += 1;
    }
    assert_eq!(disk.unread() + lost, appended);
    let bytes: u64 = files(folder.path()).iter().map(|name| folder.path().join(name).metadata().unwrap().len()).sum();
    assert!((600..=800).contains(&bytes), "{bytes}");
    let first = disk.read(two(1)).unwrap();
    assert_eq!(texts(&first), [format!("{lost:020}")]);
}

#[test]
fn a_line_that_was_cut_off_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = Disk::open(folder.path(), MAX).unwrap();
    disk.append(&lines(&["1", "2"])).unwrap();
    drop(disk);
    let file = folder.path().join(&files(folder.path())[0]);
    let mut appended = OpenOptions::new().append(true).open(&file).unwrap();
    appended.write_all(b"{\"half\":").unwrap();
    let mut disk = Disk::open(folder.path(), MAX).unwrap();
    assert_eq!(disk.unread(), 2);
    disk.append(&lines(&["3"])).unwrap();
    assert_eq!(texts(&disk.read(ALL).unwrap()), ["1", "2", "3"]);
}

#[test]
fn a_file_that_is_gone_is_reported_and_the_next_one_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = Disk::open(folder.path(), MAX).unwrap();
    disk.append(&lines(&["3"])).unwrap();
    disk.prepend(&lines(&["1", "2"])).unwrap();
    fs::remove_file(folder.path().join(&files(folder.path())[0])).unwrap();
    let damage = disk.read(ALL).unwrap_err();
    assert_eq!(damage.lines, 2);
    assert!(damage.reason.contains(".jsonl: "), "{damage:?}");
    assert_eq!(texts(&disk.read(ALL).unwrap()), ["3"]);

    // One that has lost its content.
    disk.append(&lines(&["4"])).unwrap();
    disk.prepend(&lines(&["5", "6"])).unwrap();
    OpenOptions::new().write(true).open(folder.path().join(&files(folder.path())[0])).unwrap().set_len(0).unwrap();
    assert_eq!(disk.read(ALL).unwrap_err().lines, 2);
    disk.commit().unwrap();
    assert_eq!(texts(&disk.read(ALL).unwrap()), ["4"]);
}

#[test]
fn a_write_that_fails_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = Disk::open(folder.path(), MAX).unwrap();
    // A folder where the next file would be.
    let next = disk.path(FIRST);
    fs::create_dir(&next).unwrap();
    assert!(disk.append(&lines(&["1"])).is_err());
    assert!(disk.prepend(&lines(&["0"])).is_ok());
    assert_eq!(disk.unread(), 1);
    fs::remove_dir(&next).unwrap();
    disk.append(&lines(&["1"])).unwrap();
    assert_eq!(texts(&disk.read(ALL).unwrap()), ["0"]);
}

#[test]
fn a_file_that_cannot_be_removed_is_not_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = Disk::open(folder.path(), MAX).unwrap();
    disk.append(&lines(&["2"])).unwrap();
    disk.prepend(&lines(&["1"])).unwrap();
    disk.read(ALL).unwrap();
    // A folder in its place.
    let oldest = folder.path().join(&files(folder.path())[0]);
    fs::remove_file(&oldest).unwrap();
    fs::create_dir(&oldest).unwrap();
    assert!(disk.commit().is_err());
    assert_eq!(texts(&disk.read(ALL).unwrap()), ["2"]);
}

#[test]
fn a_folder_has_one_process_and_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("spill/webhook");
    let mut disk = Disk::open(&folder, MAX).unwrap();
    disk.append(&lines(&["1"])).unwrap();
    let other = Disk::open(&folder, MAX).unwrap_err();
    assert_eq!(other.to_string(), "another process uses it");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join(&files(&folder)[0]))), (0o700, 0o600));
    drop(disk);
    assert_eq!(Disk::open(&folder, MAX).unwrap().unread(), 1);
}

#[test]
fn a_damaged_position_has_lines_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = Disk::open(folder.path(), MAX).unwrap();
    disk.append(&lines(&["1", "2"])).unwrap();
    disk.read(two(1)).unwrap();
    disk.commit().unwrap();
    drop(disk);
    for (position, expected) in [("nonsense", 2), (&format!("{FIRST} 999"), 0)] {
        fs::write(folder.path().join(POSITION), position).unwrap();
        assert_eq!(Disk::open(folder.path(), MAX).unwrap().unread(), expected, "{position}");
    }
}
