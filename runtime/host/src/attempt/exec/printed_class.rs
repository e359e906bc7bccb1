//! The class of failure that a failed command printed: a line `failure_class=infra` or `failure_class=product`, as
//! scenario runners and preflight checks print it.
//!
//! The line must be a whole line. It only says who has to act, so a false line can make nothing pass. In each stream
//! the last such line counts. If the two streams differ, the product failed.

use glovebox_jail::exec::{CapturedOutput, Exit};
use glovebox_record::PrintedClass;

/// The beginning of the line.
const KEY: &str = "failure_class=";

/// Returns the class that a command printed; `None` if it printed none.
pub(super) fn printed_class(exit: &Exit) -> Option<PrintedClass> {
    let classes = [&exit.stdout, &exit.stderr].map(last_class);
    let product = classes.contains(&Some(PrintedClass::Product)).then_some(PrintedClass::Product);
    product.or_else(|| classes.into_iter().flatten().next())
}

/// Returns the class of the last such line of a stream.
fn last_class(stream: &CapturedOutput) -> Option<PrintedClass> {
    if !stream.truncated {
        return last_line(&String::from_utf8_lossy(&[&stream.head[..], &stream.tail].concat()));
    }
    // The lines at the gap are incomplete.
    let (head, tail) = (String::from_utf8_lossy(&stream.head), String::from_utf8_lossy(&stream.tail));
    let whole = head.rfind('\n').map_or("", |end| &head[..end]);
    let rest = tail.split_once('\n').map_or("", |(_, rest)| rest);
    last_line(rest).or_else(|| last_line(whole))
}

fn last_line(text: &str) -> Option<PrintedClass> {
    text.lines().rev().find_map(|line| match line.strip_prefix(KEY)?.trim_end() {
        "infra" => Some(PrintedClass::Infra),
        "product" => Some(PrintedClass::Product),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_record::Digest;

    fn stream(head: &str, tail: &str, truncated: bool) -> CapturedOutput {
        let (head, tail) = (head.into(), tail.into());
        CapturedOutput { head, tail, total_bytes: 0, truncated, cut: false, digest: Digest::ZERO }
    }

    #[test]
    fn only_a_whole_line_names_a_class() {
        use PrintedClass::{Infra, Product};
        for (text, class) in [
            ("failure_class=infra\n", Some(Infra)),
            ("a\nfailure_class=infra\r\nb\n", Some(Infra)),
            ("failure_class=product", Some(Product)),
            ("failure_class=infra\nfailure_class=product\n", Some(Product)),
            ("failure_class=product\nfailure_class=infra\n", Some(Infra)),
            (" failure_class=infra\n", None),
            ("echo failure_class=infra\n", None),
            ("failure_class=infrared\n", None),
            ("failure_class=\n", None),
            ("", None),
        ] {
            assert_eq!(last_class(&stream(text, "", false)), class, "{text:?}");
            for at in 0..text.len() {
                let (head, tail) = text.split_at(at);
                assert_eq!(last_class(&stream(head, tail, false)), class, "{head:?} {tail:?}");
            }
        }
        for (head, tail, class) in [
            ("failure_class=infra", "x\ny\n", None),
            ("x\n", "failure_class=infra\ny\n", None),
            ("failure_class=infra\nx", "y\n", Some(Infra)),
            ("failure_class=infra\nx", "y\nfailure_class=product\n", Some(Product)),
        ] {
            assert_eq!(last_class(&stream(head, tail, true)), class, "{head:?} {tail:?}");
        }
    }
}
