//! What builders get after a visit of the judge: the inputs of the plugin, the agent's prompt, and the files and
//! variables that the agent found.
//!
//! The attempt id and the number of the visit are left out, because they only identify the visit.

use crate::workbench::Workbench;

/// Everything that builders get, as text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Observation {
    input: String,
    prompt: String,
    found: String,
}

impl Observation {
    /// Returns the first lines in which two observations differ.
    pub(crate) fn difference(&self, other: &Self) -> (String, String) {
        let lines = |of: &Self| format!("{}\n{}\n{}", of.input, of.prompt, of.found);
        let (here, there) = (lines(self), lines(other));
        let differs = here.lines().zip(there.lines()).find(|(a, b)| a != b);
        differs.map_or((here.clone(), there.clone()), |(a, b)| (a.to_owned(), b.to_owned()))
    }
}

/// Collects what builders got after a visit of the judge.
pub(crate) fn of_visit(bench: &Workbench, visit: usize) -> Observation {
    let kept = |name: &str| bench.run_folder("r").join("artifacts").join(name);
    let memory = std::fs::read(kept(&format!("look.{visit}.1/input.bin"))).unwrap();
    let next = visit + 1;
    Observation {
        input: Memory(&memory).input(),
        prompt: std::fs::read_to_string(kept(&format!("build.{next}.1/prompt.md"))).unwrap(),
        found: bench.run_text("r", &format!("workspace/seen/{next}.txt")),
    }
}

/// Returns how each visit of a node ended, in order. Repeated attempts belong to one visit.
pub(crate) fn statuses(bench: &Workbench, node: &str) -> Vec<String> {
    let lines = bench.run_text("r", "progress.ndjson");
    let events = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["event"].take());
    let is_end = |event: &serde_json::Value| event["kind"] == "stage.finished" && event["retrying"] != true;
    let ends = events.filter(|event| is_end(event) && event["node"] == node);
    ends.map(|event| event["outcome"]["status"].as_str().unwrap().to_owned()).collect()
}

/// The memory of the plugin `observes`, in the layout of the canonical ABI.
struct Memory<'m>(&'m [u8]);

impl Memory<'_> {
    /// Returns the fields of `stage-input` of `wit/types.wit` as text.
    fn input(&self) -> String {
        let at = self.number(1040);
        let mut text = format!("run {} {} {}\n", self.text(at), self.number(at + 8), self.text(at + 12));
        text += &format!("node {} {}\n", self.text(at + 20), self.number(at + 36));
        for (name, offset) in [("handler", 44), ("label", 52), ("goal", 72)] {
            text += &format!("{name} {}\n", self.text(at + offset));
        }
        text += &format!("prompt {:?}\n", self.optional(at + 60));
        for (name, offset) in [("attribute", 80), ("context", 88), ("mount", 104), ("extra", 160)] {
            self.pairs(at + offset).iter().for_each(|(key, value)| text += &format!("{name} {key}={value:?}\n"));
        }
        let edges = self.list(at + 96, 28);
        edges.for_each(|edge| text += &format!("edge {} {}\n", self.text(edge), self.text(edge + 16)));
        self.list(at + 112, 8).for_each(|path| text += &format!("write {}\n", self.text(path)));
        text += &format!("any command {}\n", self.0[at + 120]);
        self.list(at + 124, 8).for_each(|prefix| {
            let words: Vec<_> = self.list(prefix, 8).map(|word| self.text(word)).collect();
            text += &format!("command {}\n", words.join(" "));
        });
        let failure = (self.0[at + 132] == 1).then(|| [136, 144, 152].map(|offset| self.text(at + offset)));
        text + &format!("failure {failure:?}\n")
    }

    fn number(&self, at: usize) -> usize {
        u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap()) as usize
    }

    fn text(&self, at: usize) -> String {
        let (start, length) = (self.number(at), self.number(at + 4));
        String::from_utf8(self.0[start..start + length].to_vec()).unwrap()
    }

    fn optional(&self, at: usize) -> Option<String> {
        (self.0[at] == 1).then(|| self.text(at + 4))
    }

    fn list(&self, at: usize, bytes: usize) -> impl Iterator<Item = usize> {
        let (start, length) = (self.number(at), self.number(at + 4));
        (0..length).map(move |index| start + index * bytes)
    }

    fn pairs(&self, at: usize) -> Vec<(String, String)> {
        self.list(at, 16).map(|pair| (self.text(pair), self.text(pair + 8))).collect()
    }
}
