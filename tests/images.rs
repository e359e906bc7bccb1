//! Images in tool results: what each provider is sent, what the run records, and which images are never sent.
//!
//! The witnesses are the log of the fake provider and the files of the run.

use crate::providers::{Bench, FAMILIES, Turn};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// Returns a file with the chunks of a PNG image of 32 x 16 pixels. No provider in these tests decodes the pixels.
fn picture(last: u8) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x20\0\0\0\x10\x08\x02\0\0\0....".to_vec();
    bytes.extend(b"\0\0\x01\x6fIDAT");
    bytes.extend((0..367_u32).map(|at| (at % 251) as u8 ^ last));
    bytes.extend(b"....\0\0\0\0IEND....");
    bytes
}

fn data(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn reads(path: &str) -> Turn {
    Turn::tool("read_file", json!({ "path": path }))
}

fn done() -> Turn {
    Turn::text("OUTCOME: SUCCESS")
}

const ONE: &str =
    "digraph g { start [shape=Mdiamond] look [prompt=\"Look\", allowed_write_paths=\"\"] done [shape=Msquare]
    start -> look -> done }";

fn bench(pipeline: &str, family: &str, turns: &[Turn]) -> Bench {
    let bench = Bench::new(pipeline, family, turns);
    let table = bench.project_text("glovebox.toml");
    bench.write("glovebox.toml", &format!("{table}images = true\n"));
    bench
}

#[test]
fn a_model_sees_an_image_that_it_reads() {
    for family in FAMILIES {
        let bench = bench(ONE, family, &[reads("docs/shot.png"), reads("docs/shot.png"), done()]);
        let (bytes, sent) = (picture(0), data(&picture(0)));
        bench.write_bytes("docs/shot.png", &bytes);
        bench.run().ends(0);
        let times: Vec<usize> = bench.requests().iter().map(|body| body.matches(&sent).count()).collect();
        assert_eq!(times, [0, 1, 2], "{family}");
        let told = bench.requests()[1].contains("`docs/shot.png`: image/png, 424 bytes, 32 x 16");
        assert!(told, "{family}: {}", bench.requests()[1]);
        // The run records a digest instead of the bytes.
        let digest = glovebox_record::Digest::hash(&bytes).to_string();
        bench.glovebox(&["transcript", "r", "look"]).ends(0).says(&format!("image/png, 424 bytes, {digest}"));
        let kept = bench.read_in_run("look/transcript.ndjson");
        assert!(kept.contains(&digest) && !kept.contains(&sent), "{family}");
    }
}

#[test]
fn a_model_that_takes_no_images_is_told_so() {
    for family in ["openai-compatible", "ollama"] {
        let bench = Bench::new(ONE, family, &[reads("shot.png"), done()]);
        bench.write_bytes("shot.png", &picture(0));
        bench.run().ends(0);
        let body = &bench.requests()[1];
        assert!(
            body.contains("32 x 16; this model does not accept pictures") && !body.contains(&data(&picture(0))),
            "{body}"
        );
    }
}

#[test]
fn a_killed_attempt_sends_the_same_image_and_asks_nothing_twice() {
    let bench = bench(ONE, "anthropic", &[reads("shot.png"), reads("shot.png"), done().after(3000), done()]);
    bench.write_bytes("shot.png", &picture(0));
    bench.kill_run_after(3);
    bench.resume().ends(0);
    let asked = bench.requests();
    assert_eq!(asked.len(), 4);
    assert_eq!(asked[2], asked[3], "the question that had no answer when the run was killed");
}

#[test]
fn a_later_stage_goes_on_without_the_image() {
    let pipeline = "digraph g { default_fidelity=full
        start [shape=Mdiamond] look [prompt=\"Look\", allowed_write_paths=\"\"]
        again [prompt=\"Again\", allowed_write_paths=\"\"] done [shape=Msquare] start -> look -> again -> done }";
    for family in FAMILIES {
        let bench = bench(pipeline, family, &[reads("shot.png"), done(), done()]);
        bench.write_bytes("shot.png", &picture(0));
        bench.run().ends(0);
        let last = bench.requests().pop().unwrap();
        assert!(
            last.contains("Read the file again to see it.") && !last.contains(&data(&picture(0))),
            "{family}: {last}"
        );
    }
}

#[test]
fn bytes_that_are_no_image_are_never_sent_as_one() {
    let bench = bench(ONE, "openai", &[reads("a.png"), reads("large.png"), done()]);
    bench.write_bytes("a.png", b"\x89PNG is only the name of it\xff");
    let mut large = picture(0);
    large.resize(3_932_161, 0);
    bench.write_bytes("large.png", &large);
    bench.run().ends(0);
    let last = bench.requests().pop().unwrap();
    assert!(last.contains("PNG is only the name of it"), "it is text in Latin-1: {last}");
    assert!(last.contains("3932161 bytes, more than the 3932160 that can be shown"));
    assert!(!last.contains("input_image"));
}

/// A provider would refuse the whole conversation because of an invalid image, and would refuse every later request as
/// well. The model gets a sentence instead.
#[test]
fn an_image_that_a_provider_would_refuse_is_a_sentence() {
    let bench = bench(ONE, "anthropic", &[reads("cut.png"), reads("wide.png"), done()]);
    bench.write_bytes("cut.png", &picture(0)[..200]);
    let mut wide = picture(0);
    wide[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
    bench.write_bytes("wide.png", &wide);
    bench.run().ends(0);
    let last = bench.requests().pop().unwrap();
    assert!(last.contains("begins like a picture (image/png), but a part of it is missing"), "{last}");
    assert!(
        last.contains("4294967295 x 16, but each side must have 1 to 8000") && !last.contains("\"image\""),
        "{last}"
    );
}

/// The sentence about the limit on images comes before any limit of the component is reached, so the stage continues.
#[test]
fn more_bytes_of_images_than_a_conversation_shows_end_no_stage() {
    let reads =
        ["a.png", "b.png", "c.png", "d.png"].map(|path| json!({ "name": "read_file", "arguments": { "path": path } }));
    let bench = bench(ONE, "anthropic", &[Turn::tools(&reads), done()]);
    for (number, name) in ["a.png", "b.png", "c.png", "d.png"].into_iter().enumerate() {
        let mut large = picture(u8::try_from(number).unwrap());
        large.resize(3_145_000, 0);
        bench.write_bytes(name, &large);
    }
    bench.run().ends(0);
    let last = bench.requests().pop().unwrap();
    assert_eq!((last.matches("\"base64\"").count(), last.matches("this conversation has 3 pictures").count()), (3, 1));
}

#[test]
fn a_conversation_has_at_most_twenty_images() {
    let mut turns: Vec<Turn> = (0..21).map(|number| reads(&format!("{number}.png"))).collect();
    turns.push(done());
    let bench = bench(ONE, "gemini", &turns);
    for number in 0..21 {
        bench.write_bytes(&format!("{number}.png"), &picture(number));
    }
    bench.run().ends(0);
    let last = bench.requests().pop().unwrap();
    assert_eq!(last.matches("\"inlineData\"").count(), 20);
    assert!(last.contains("this conversation has 20 pictures"), "{last}");
}

/// The model of a stage never gets an image that is equal to one of the hold-outs, even if the stage created the file
/// itself. An image that the project contains elsewhere is not secret.
#[test]
fn an_image_of_the_hold_outs_is_never_sent() {
    let pipeline = "digraph g { scenarios=\"scripts/scenarios/\" scenario_copies=\"allow\" start [shape=Mdiamond]
        look [prompt=\"Look\", allowed_write_paths=\"./\", allowed_commands=\"sh\"] done [shape=Msquare]
        start -> look -> done }";
    let check = |public: bool| {
        let turns = [Turn::tool("shell", json!({ "command": "sh guess.sh" })), reads("guess.png"), done()];
        let bench = bench(pipeline, "openai", &turns);
        bench.write("guess.sh", &format!("echo {} | base64 -d > guess.png\n", data(&picture(7))));
        bench.write_bytes("scripts/scenarios/expected.png", &picture(7));
        if public {
            bench.write_bytes("docs/logo.png", &picture(7));
        }
        let answer = bench.run();
        let is_sent = bench.requests().iter().any(|body| body.contains("input_image"));
        assert_eq!((answer.code == 0, is_sent), (public, public), "{}{}", answer.stdout, answer.stderr);
        if !public {
            answer.says("holdout");
        }
    };
    check(true);
    check(false);
}
