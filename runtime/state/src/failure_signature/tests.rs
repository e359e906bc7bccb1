//! Nine families of noise, fifty generated texts each, and pairs of failures that are really different.

use super::{of_failure, plain};
use glovebox_record::{Failure, FailureClass};

mod different;

/// Number of texts of each family.
const TEXTS: usize = 50;

/// A generator of numbers that gives the same texts in each test run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.roll() >> 11) % end
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn letters(&mut self, of: &str, length: usize) -> String {
        let of: Vec<char> = of.chars().collect();
        (0..length).map(|_| self.one(&of)).collect()
    }

    fn hex(&mut self, length: usize) -> String {
        self.letters("0123456789abcdef", length)
    }
}

const ALPHANUMERIC: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

fn uuid(dice: &mut Dice) -> String {
    let version = dice.one(&['1', '2', '3', '4', '5', '6', '7', '8', '0']);
    let (start, rest) = (dice.hex(8), dice.hex(12));
    let uuid = format!(
        "{start}-{}-{version}{}-{}{}-{rest}",
        dice.hex(4),
        dice.hex(3),
        dice.one(&['8', '9', 'a', 'b']),
        dice.hex(3)
    );
    let uuid = if dice.below(2) == 0 { uuid.to_uppercase() } else { uuid };
    format!("error: no session {uuid} for urn:uuid:{uuid}")
}

fn hash(dice: &mut Dice) -> String {
    let length = dice.one(&[7, 8, 12, 32, 40, 64]);
    let hash = match dice.below(3) {
        0 => dice.letters("abcdef", length),
        1 => dice.hex(length).to_uppercase(),
        _ => dice.hex(length),
    };
    let hash = if hash == "defaced" || hash == "effaced" || hash == "acceded" { "abcdefa".to_owned() } else { hash };
    format!("fatal: bad object {hash}\nlinking libcore-{}.rlib: sha256:{} differs", dice.hex(16), dice.hex(64))
}

fn temporary(dice: &mut Dice) -> String {
    let (ten, eight, six) = (
        dice.letters(ALPHANUMERIC, 10),
        dice.letters("abcdefghijklmnopqrstuvwxyz0123456789_", 8),
        dice.letters(ALPHANUMERIC, 6),
    );
    let name = match dice.below(7) {
        0 => format!("/tmp/tmp.{ten}"),
        1 => format!("/tmp/tmp{eight}"),
        2 => format!("/tmp/.tmp{six}"),
        3 => format!("/tmp/go-build{}", dice.roll()),
        4 => format!("/tmp/build-{}", dice.letters("abcdefghijklmnopqrstuvwxyz", 6)),
        5 => format!("/tmp/rustc{six}"),
        _ => format!("/tmp/{}", dice.hex(4)),
    };
    format!("cp: cannot stat '{name}/out/a.o': No such file, see target/.tmp{six} and ./tmp.{ten}")
}

fn address(dice: &mut Dice) -> String {
    let (pid, port) = (1 + dice.below(4_194_304), 1024 + dice.below(64_000));
    let host = match dice.below(4) {
        0 => format!("127.0.0.{}", 1 + dice.below(254)),
        1 => format!("fe80::{}:{}ff:fe{}:{}", dice.hex(3), dice.hex(2), dice.hex(2), dice.hex(4)),
        2 => format!("2001:db8::{}", dice.hex(4)),
        _ => format!("10.{}.{}.{}", dice.below(256), dice.below(256), dice.below(256)),
    };
    let at = format!("{host} port {port}");
    format!(
        "sshd[{pid}]: pid {pid}, pid={pid}: connect to {at}: refused, http://localhost:{port}/a, object at 0x{}",
        dice.hex(12)
    )
}

fn duration(dice: &mut Dice) -> String {
    let (large, small) = (1 + dice.below(900), dice.below(1000));
    let took = match dice.below(12) {
        0 => format!("{large}ns"),
        1 => format!("{large}.{small} µs"),
        2 => format!("{large}ms"),
        3 => format!("0.{small}s"),
        4 => format!("{large}.{small} seconds"),
        5 => format!("{}m{}.{small:03}s", 1 + dice.below(59), dice.below(60)),
        6 => format!("{} min {} sec", dice.below(60), dice.below(60)),
        7 => format!("{} hours, {} minutes", dice.below(24), dice.below(60)),
        8 => format!("PT{}M{}S", 1 + dice.below(59), dice.below(60)),
        9 => format!("{}d{}h{}m", 1 + dice.below(9), dice.below(24), dice.below(60)),
        10 => "1 second".to_owned(),
        _ => format!("{:02}:{:02}:{:02}.{small:03}", dice.below(24), dice.below(60), dice.below(60)),
    };
    format!("test parse ... FAILED ({took})\nfinished in {took}, no answer for {took}")
}

fn date(dice: &mut Dice) -> String {
    let (year, month, day) = (2020 + dice.below(20), dice.below(12), 1 + dice.below(28));
    let (hour, minute, second) = (dice.below(24), dice.below(60), dice.below(60));
    let weekday = dice.one(&["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]);
    let whole_weekday = dice.one(&["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]);
    let short = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][month as usize];
    let clock = format!("{hour:02}:{minute:02}:{second:02}");
    let zone = dice.one(&["UTC", "GMT", "CET", "PST"]);
    let month = month + 1;
    let at = match dice.below(9) {
        0 => format!("{year}-{month:02}-{day:02}T{clock}Z"),
        1 => format!("{year}-{month:02}-{day:02}T{clock}.{:06}+02:00", dice.below(1_000_000)),
        2 => format!("{year}-{month:02}-{day:02} {clock},{:03}", dice.below(1000)),
        3 => format!("{weekday} {short} {day} {clock} {zone} {year}"),
        4 => format!("{weekday}, {day:02} {short} {year} {clock} {zone}"),
        5 => format!("{day:02}/{short}/{year}:{clock} +0000"),
        6 => format!("{whole_weekday}, {short} {day}, {year}"),
        7 => format!("{year}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z"),
        _ => format!("{month}/{day}/{year} {}:{minute:02} {}", 1 + hour % 12, dice.one(&["AM", "PM"])),
    };
    format!("[{at}] ERROR no route to the database since {at}")
}

fn size(dice: &mut Dice) -> String {
    let (whole, part) = (1 + dice.below(1023), dice.below(100));
    let unit = dice.one(&["B", "KB", "kB", "MB", "GB", "KiB", "MiB", "GiB", "bytes", "byte", "K", "M", "G"]);
    let gap = if unit.len() > 1 && dice.below(2) == 0 { " " } else { "" };
    let size = if dice.below(2) == 0 { format!("{whole}{gap}{unit}") } else { format!("{whole}.{part}{gap}{unit}") };
    format!("fetched {size} at {whole}.{part} {}/s: archive of {size} is damaged", dice.one(&["KB", "MB", "kB", "MiB"]))
}

fn progress(dice: &mut Dice) -> String {
    let (done, all) = (dice.below(50), 50 + dice.below(50));
    let color = format!("\u{1b}[{};{}m", dice.below(8), 30 + dice.below(8));
    let updates: String =
        (0..dice.below(5)).map(|step| format!("{step}% {}\r", dice.one(&['|', '/', '-', '\\']))).collect();
    let bar = format!("[{}>{}]", "=".repeat(3 + done as usize / 3), " ".repeat((all - done) as usize / 3));
    let spinner = dice.one(&["⠋", "⠙", "⠹", "⠸"]);
    let line = "=".repeat(10 + dice.below(9) as usize);
    format!(
        "{updates}{color}error\u{1b}[0m: {bar} {done}/{all} ({done}%)\n{spinner} step {done} of {all}\n{line} failed {line}"
    )
}

fn line(dice: &mut Dice) -> String {
    let (line, column) = (1 + dice.below(3000), 1 + dice.below(120));
    format!(
        "thread 'main' panicked at src/parse.rs:{line}:{column}:\n  --> src/lib.rs:{line}:{column}\n{line} | let x = y;\n\
         File \"a.py\", line {line}, in parse\nsrc/a.ts({line},{column}): error TS2304\nmain.go:{line}: undefined"
    )
}

#[test]
fn noise_makes_no_difference() {
    type Family = (&'static str, fn(&mut Dice) -> String);
    let families: [Family; 9] = [
        ("uuid", uuid),
        ("hash", hash),
        ("temporary name", temporary),
        ("address, port and process", address),
        ("duration", duration),
        ("date, day and time", date),
        ("size", size),
        ("escape sequence and progress", progress),
        ("line number", line),
    ];
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for (name, text) in families {
        let first = text(&mut dice);
        for _ in 1..TEXTS {
            let other = text(&mut dice);
            assert_eq!(plain(&first), plain(&other), "{name}:\n{first}\n{other}");
        }
    }
}

#[test]
fn different_failures_stay_different() {
    assert!(different::PAIRS.len() >= 50);
    for (one, other) in different::PAIRS {
        assert_ne!(plain(one), plain(other), "{one}");
    }
}

#[test]
fn a_text_is_read_once() {
    for (text, expected) in [
        ("Test failed in 0.03s", "test failed in <n>"),
        ("a\n b", "a b"),
        ("facade", "facade"),
        ("x1", "x1"),
        ("exit code 2, status: 404, got 500", "exit code 2, status: 404, got 500"),
        ("exit status 1 after 3 s, code 45%", "exit status 1 after <n>, code <n>%"),
        ("http://127.0.0.1:80/a", "http://<n>/a"),
        ("worker-3 of step-3", "worker-<n> of step-3"),
        ("gw2 worker12 pid_7 test_7", "gw<n> worker<n> pid_<n> test_7"),
        ("test_add[1-2] and sshd[12]", "test_add[1-2] and sshd[<n>]"),
        ("log_2026_11_29.txt", "log_<n>_<n>_<n>.txt"),
        ("_ZN4core9panicking5panic17h0123456789abcdefE", "_zn4core9panicking5panic17"),
        ("one\rtwo\r\nthree\u{8}\u{8}", "two thr"),
        ("\u{1b}]0;title\u{7}a\u{1b}(Bb\u{1b}[", "ab"),
        ("ÉCHEC à 5", "échec à <n>"),
        ("", ""),
    ] {
        assert_eq!(plain(text), expected);
    }
}

/// If each word of such a text were compared with the rest of the text, this test would not end.
#[test]
fn a_hostile_text_is_read_in_one_pass() {
    for part in [
        "1:", "test[", "TestA/", "1.", "\r", "::", "a:b:", "P1D", "sha256-", "[=", "\u{1b}]", "0x1-", "tmp.", "1_",
        "/tmp/",
    ] {
        let text = part.repeat((1 << 19) / part.len()) + "1abc";
        assert!(plain(&text).len() <= text.len() * 2, "{part:?}");
    }
}

#[test]
fn the_signature_covers_class_code_and_reason() {
    let signature = |class, code: &'static str, reason: &str| of_failure(&Failure::new(class, code, reason));
    let deterministic = FailureClass::Deterministic;
    let first = signature(deterministic, "a/b", "at 10:15");
    assert!(first.is_some());
    assert_eq!(first, signature(deterministic, "a/b", "at 11:20"));
    for other in [
        signature(FailureClass::Contract, "a/b", "at 10:15"),
        signature(deterministic, "a/c", "at 10:15"),
        signature(deterministic, "a/b", "by 10:15"),
        signature(FailureClass::Transient, "a/b", "at 10:15"),
    ] {
        assert_ne!(first, other);
    }
    let (budget, transient) = (FailureClass::Budget, FailureClass::Transient);
    let cut = signature(budget, "limit/wall_ms", "the stage ran for a second");
    assert!(cut.is_some());
    assert_eq!(cut, signature(budget, "limit/wall_ms", "the stage wrote half a line"));
    assert!(signature(transient, "verify/timeout", "timed out").is_some());
    for code in ["limit/max_visits", "limit/max_wall_time", "limit/max_tokens", "provider/request-timeout"] {
        assert_eq!(signature(budget, code, "a limit of the run or of a node"), None, "{code}");
    }
}
