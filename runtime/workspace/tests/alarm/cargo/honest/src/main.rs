//! Reads commands from standard input and prints the set after each.

use interval_set::IntervalSet;
use std::io::BufRead;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut set = IntervalSet::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["insert", start, end] => set.insert(start.parse()?, end.parse()?)?,
            ["remove", start, end] => set.remove(start.parse()?, end.parse()?)?,
            _ => return Err(format!("unknown command: {line}").into()),
        }
        let texts: Vec<String> = set.iter().map(|(start, end)| format!("{start}..{end}")).collect();
        println!("{}", texts.join(" "));
    }
    Ok(())
}
