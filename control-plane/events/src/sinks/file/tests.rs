use super::*;

fn lines(texts: &[&str]) -> Vec<Line> {
    texts.iter().map(|text| text.as_bytes().into()).collect()
}

/// A log in a folder of its own, with what it has: a call of `files` shows name and content of each file.
struct Folder {
    folder: tempfile::TempDir,
    log: Log,
}

impl Folder {
    fn new(rotation: Option<(u64, u32)>) -> Folder {
        let folder = tempfile::tempdir().unwrap();
        let rotation = rotation.map(|(max_bytes, keep)| Rotation { max_bytes, keep });
        let log = Log::new(folder.path().join("e"), rotation);
        Folder { folder, log }
    }

    fn append(&mut self, texts: &[&str]) {
        let (written, result) = self.log.append(&lines(texts));
        result.unwrap();
        assert_eq!(written, texts.len());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn files(&self) -> Vec<String> {
        let mut files: Vec<String> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                let content = std::fs::read_to_string(entry.path()).unwrap();
                format!("{} {}", entry.file_name().to_string_lossy(), content.replace('\n', "|"))
            })
            .collect();
        files.sort();
        files
    }
}

#[test]
fn a_file_that_is_full_makes_room() {
    let mut folder = Folder::new(Some((6, 2)));
    folder.append(&["11", "22"]);
    assert_eq!(folder.files(), ["e 11|22|"]);
    folder.append(&["33", "44", "55"]);
    assert_eq!(folder.files(), ["e 55|", "e.1 33|44|", "e.2 11|22|"]);
    folder.append(&["longer than the limit", "6"]);
    assert_eq!(
        folder.files(),
        ["e 6|", "e.1 longer than the limit|", "e.2 55|"],
        "a line stays whole, the oldest is gone"
    );
}

#[test]
fn one_old_file_can_be_enough_and_gaps_are_no_trouble() {
    let mut folder = Folder::new(Some((3, 1)));
    folder.append(&["1", "22", "33"]);
    assert_eq!(folder.files(), ["e 33|", "e.1 22|"]);
    let mut folder = Folder::new(Some((3, 3)));
    std::fs::write(folder.path("e.2"), "old\n").unwrap();
    folder.append(&["11", "22"]);
    assert_eq!(folder.files(), ["e 22|", "e.1 11|", "e.3 old|"]);
}

#[test]
fn without_limits_nothing_is_moved_and_others_may_move_it() {
    let mut folder = Folder::new(None);
    folder.append(&["1", "2"]);
    std::fs::rename(folder.path("e"), folder.path("moved")).unwrap();
    folder.append(&["3"]);
    assert_eq!(folder.files(), ["e 3|", "moved 1|2|"]);
    std::fs::remove_file(folder.path("e")).unwrap();
    folder.append(&["4"]);
    assert_eq!(folder.files(), ["e 4|", "moved 1|2|"]);
}

#[test]
fn a_file_that_others_cut_has_room_again() {
    let mut folder = Folder::new(Some((6, 1)));
    folder.append(&["11", "22"]);
    File::options().write(true).open(folder.path("e")).unwrap().set_len(0).unwrap();
    folder.append(&["33"]);
    assert_eq!(folder.files(), ["e 33|"]);
}

#[test]
fn a_half_line_of_a_crash_is_closed_first() {
    let mut folder = Folder::new(Some((100, 1)));
    std::fs::write(folder.path("e"), "whole\nhal").unwrap();
    folder.append(&["1"]);
    folder.append(&["2"]);
    assert_eq!(folder.files(), ["e whole|hal|1|2|"]);
    let mut folder = Folder::new(Some((6, 1)));
    std::fs::write(folder.path("e"), "whole\nhal").unwrap();
    folder.append(&["1"]);
    assert_eq!(folder.files(), ["e 1|", "e.1 whole|hal|"], "where it is rotated as well");
}

#[test]
fn a_rotation_that_fails_loses_nothing() {
    let mut folder = Folder::new(Some((3, 1)));
    // A folder with something in it is no place to rename a file to.
    std::fs::create_dir(folder.path("e.1")).unwrap();
    std::fs::write(folder.path("e.1").join("x"), "").unwrap();
    folder.append(&["11", "22", "33"]);
    assert_eq!(std::fs::read_to_string(folder.path("e")).unwrap(), "11\n22\n33\n");
    std::fs::remove_dir_all(folder.path("e.1")).unwrap();
    folder.append(&["44"]);
    assert_eq!(folder.files(), ["e 44|", "e.1 11|22|33|"]);
}

#[test]
fn a_folder_that_is_missing_is_an_error_until_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("later").join("e");
    let mut log = Log::new(path.clone(), None);
    let (written, result) = log.append(&lines(&["1"]));
    assert_eq!((written, result.unwrap_err().kind()), (0, io::ErrorKind::NotFound));
    std::fs::create_dir(folder.path().join("later")).unwrap();
    assert!(log.append(&lines(&["1"])).1.is_ok());
    assert_eq!(std::fs::read_to_string(path).unwrap(), "1\n");
}

/// `/dev/full` takes nothing, as a disk without room.
#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn a_full_disk_is_tried_again() {
    let mut sink = FileSink::new("/dev/full".into(), None);
    let failure = sink.write(&lines(&["1", "2"])).await.unwrap_err();
    assert_eq!((failure.written, failure.then), (0, Then::Retry(None)));
    assert!(failure.reason.contains("No space left"), "{}", failure.reason);
}
