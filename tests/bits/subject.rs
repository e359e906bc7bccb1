//! The hostile program under test: what it does on each visit to pass on a number, one channel after the other.

/// The texts of the public hints in the scenario.
pub(crate) const HINTS: [&str; 2] = ["the answer is a fruit", "count the apples, it's \"many\""];

/// Number of secrets that are sent over each channel.
const SECRETS: usize = 4;

/// The actions of the program under test on one visit.
pub(crate) struct SubjectAction {
    /// Name of the channel that carries the secret.
    pub(crate) channel: &'static str,
    /// Program text for `sh`.
    pub(crate) script: String,
    /// Indices of the public hints that the program prints unchanged, each on a line.
    pub(crate) hints: Vec<usize>,
}

/// Returns one act for every channel and each of several secrets.
pub(crate) fn acts() -> Vec<SubjectAction> {
    let told = (1..=SECRETS).flat_map(|secret| channels(secret).map(|(channel, script)| act(channel, &script, &[])));
    told.chain(of_hints()).chain(of_bounds()).collect()
}

fn act(channel: &'static str, script: &str, hints: &[usize]) -> SubjectAction {
    SubjectAction { channel, script: script.to_owned(), hints: hints.to_vec() }
}

/// Returns the channels that can carry any number, each with its program. None of the programs prints a public hint.
fn channels(secret: usize) -> [(&'static str, String); 20] {
    let word = ["apples", "pears", "plums", "figs", "limes", "kiwis"][secret % SECRETS];
    let signal = [9, 15, 11, 6, 1, 3][secret % SECRETS];
    let (prefix, quoted) = (&HINTS[0][..3 * secret], HINTS[0].replacen(' ', &"'`\\".repeat(secret), 1));
    [
        ("exit code", format!("exit {}", 40 + secret)),
        ("signal", format!("kill -{signal} $PPID; exit 1")),
        ("output bytes", format!("head -c {} /dev/zero | tr '\\0' x; exit 1", secret * 700)),
        ("output lines", format!("yes | head -n {secret}; exit 1")),
        ("output text", format!("echo {word}; cat scripts/scenarios/*; echo {word} >&2; exit 1")),
        ("output of a success", format!("echo {word}; exit 0")),
        ("prefix of a hint", format!("echo 'hint: {prefix}'; exit 1")),
        ("quotes in a hint", format!("cat <<'EOF'\nhint: {quoted}\nEOF\nexit 1")),
        ("hints of its own", format!("yes 'hint: {word}' | head -n {secret}; exit 1")),
        ("duration", format!("sleep 0.0{secret}; exit 1")),
        ("path of a limit", format!("truncate -s 300M \"it is {word}\"; exit 1")),
        ("name of a file", format!("echo x > \"it is {word}\"; exit 0")),
        ("content of a file", format!("echo {word} > told; exit 0")),
        ("number of files", format!("for n in $(seq {secret}); do echo x > told$n; done; exit 0")),
        ("name in the write scope", format!("mkdir -p out; echo x > out/{word}; exit 1")),
        ("content in the write scope", format!("mkdir -p out; echo {word} > out/told; chmod 755 out/told; exit 0")),
        ("name in the cache", format!("mkdir -p build; echo x > build/{word}; exit 1")),
        ("content in the cache", format!("mkdir -p build; echo {word} > build/told; exit 0")),
        ("target of a link", format!("ln -s {word} link; exit 1")),
        ("temporary files", format!("echo x > /tmp/{word}; echo x > ~/{word}; echo x > /dev/shm/{word}; exit 1")),
    ]
}

/// Returns acts that vary public hints: their order, repetition, spacing and stream.
fn of_hints() -> Vec<SubjectAction> {
    let [a, b] = HINTS.map(|hint| format!("hint: {hint}\n"));
    let say = |text: &str| format!("cat <<'EOF'\n{text}EOF\nexit 1");
    vec![
        act("order of hints", &say(&format!("{a}{b}")), &[0, 1]),
        act("order of hints", &say(&format!("{b}{a}")), &[0, 1]),
        act("repetition of hints", &say(&format!("{a}{b}{a}{a}")), &[0, 1]),
        act("repetition of hints", &say(&a.repeat(5)), &[0]),
        act("one hint", &say(&a), &[0]),
        act("spacing of a hint", &say(&format!("\n \t {} \t\n", a.trim_end())), &[0]),
        act("spacing of a hint", &say(&a.replace("hint: ", "hint:")), &[0]),
        act("spacing inside a hint", &say(&a.replace("is a", "is  a")), &[]),
        act("stream of a hint", &format!("{{ {}; }} >&2", say(&a)), &[0]),
        act("stream of a hint", &say(&b), &[1]),
        act("a hint between lines", &say(&format!("one\n{b}two\n")), &[1]),
        act("the judge's own hints", "exit 9", &[0, 1]),
        act("hints and a path", &format!("echo x > told; {}", say(&a)), &[0]),
        act("hints of a success", &say(&a).replace("exit 1", "exit 0"), &[0]),
    ]
}

/// Returns acts that exceed different limits.
fn of_bounds() -> Vec<SubjectAction> {
    let deep = "d=.; for n in $(seq 140); do d=$d/d; done; mkdir -p $d; exit 0";
    let many = "mkdir m; cd m; seq 10100 | xargs touch; exit 0";
    ["sleep 20", deep, many, "truncate -s 300M big; exit 0", "ulimit -f 1; yes > big; exit 0"]
        .map(|script| act("name of a bound", script, &[]))
        .into()
}
