//! Tests of the file with the output of a running attempt, as a follower sees it.

use super::*;
use cap_std::ambient_authority;

fn run() -> (tempfile::TempDir, Arc<RunDir>) {
    let folder = tempfile::tempdir().unwrap();
    let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
    let run = RunDir { path: folder.path().to_owned(), dir, key: None };
    (folder, Arc::new(run))
}

fn file(run: &Arc<RunDir>) -> LiveFile {
    let attempt = AttemptId::from("a1");
    LiveFile { run: Arc::clone(run), attempt, file: None, file_bytes: 0, content_bytes: 0, has_failed: false }
}

/// Reads what is there, as one text: `$command`, the bytes of standard output, `!` and those of standard error.
fn read(follower: &mut LiveFollower, run: &RunDir) -> String {
    let mut text = String::new();
    follower
        .read(&run.dir, |frame| match frame {
            LiveFrame::Command(command) => text.push_str(&format!("${command};")),
            LiveFrame::Output(OutputStream::Stdout, bytes) => text.push_str(&String::from_utf8_lossy(bytes)),
            LiveFrame::Output(OutputStream::Stderr, bytes) => {
                text.push_str(&format!("!{}", String::from_utf8_lossy(bytes)));
            }
            LiveFrame::Missed(bytes) => text.push_str(&format!("[{bytes} missed]")),
        })
        .unwrap();
    text
}

#[test]
fn a_follower_reads_what_is_written_until_the_end_and_nothing_is_left() {
    let (_folder, run) = run();
    let attempt = AttemptId::from("a1");
    let mut file = file(&run);
    assert!(LiveFollower::open(&run.dir, &attempt).is_none(), "no command, no file");
    file.write(LivePiece::Begin("make"));
    let mut follower = LiveFollower::open(&run.dir, &attempt).unwrap();
    file.write(LivePiece::Output(OutputStream::Stdout, b"one\n"));
    assert_eq!(read(&mut follower, &run), "$make;one\n");
    assert_eq!(read(&mut follower, &run), "");
    file.write(LivePiece::Output(OutputStream::Stderr, b"bad"));
    drop(file);
    assert_eq!(read(&mut follower, &run), "!bad");
    assert!(follower.has_ended() && LiveFollower::open(&run.dir, &attempt).is_none());
    assert!(run.dir.symlink_metadata(LIVE_DIR).is_err(), "the folder is removed with its last file");
}

#[test]
fn much_output_needs_little_space_and_a_slow_follower_is_told_what_it_missed() {
    let (_folder, run) = run();
    let mut file = file(&run);
    let piece = [b'x'; FRAME_BYTES_MAX];
    file.write(LivePiece::Begin("yes"));
    let attempt = AttemptId::from("a1");
    let (mut quick, mut slow) =
        (LiveFollower::open(&run.dir, &attempt).unwrap(), LiveFollower::open(&run.dir, &attempt).unwrap());
    let (mut read_bytes, rounds) = (0, 5 * FILE_BYTES_MAX as usize / FRAME_BYTES_MAX);
    for _ in 0..rounds {
        file.write(LivePiece::Output(OutputStream::Stdout, &piece));
        read_bytes += read(&mut quick, &run).matches('x').count();
        let length = run.dir.metadata(name(&attempt)).unwrap().len();
        assert!(length <= FILE_BYTES_MAX + 2 * (FRAME_BYTES_MAX + HEAD_BYTES) as u64, "{length}");
    }
    assert_eq!(read_bytes, rounds * FRAME_BYTES_MAX, "a follower that keeps up misses nothing");
    let text = read(&mut slow, &run);
    let (_, after) = text.split_once('[').unwrap();
    let missed: usize = after.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(text.matches('x').count() + missed, rounds * FRAME_BYTES_MAX);
}

#[test]
fn a_file_that_is_no_file_of_frames_is_refused() {
    for bytes in [b"o\xff\xff\xff\xffx".as_slice(), b"?\x00\x00\x00\x00", b"b\x01\x00\x00\x00x"] {
        let (_folder, run) = run();
        run.dir.create_dir_all(LIVE_DIR).unwrap();
        let attempt = AttemptId::from("a1");
        run.dir.create(name(&attempt)).unwrap().write_all(bytes).unwrap();
        let mut follower = LiveFollower::open(&run.dir, &attempt).unwrap();
        assert!(follower.read(&run.dir, |_| ()).is_err(), "{bytes:?}");
    }
}
