//! How much memory of the host process an agent program can use through the gateway of its stage.
//!
//! The witness is the peak of the host's resident memory, as the kernel counts it during the run.

use crate::providers::{Bench, Turn};
use std::time::{Duration, Instant};

const PIPELINE: &str = r#"digraph ship {
  graph [goal="mend it"]
  start [shape=Mdiamond]
  build [prompt="Do: $goal", agent.backend="exec", agent.command="python3 tools/agent.py", allowed_write_paths="src/"]
  exit [shape=Msquare]
  start -> build -> exit
}
"#;

/// Sends sixteen requests at once, each as long as a body may be, and then one with a large image, as agent programs
/// send it.
const PROGRAM: &str = r#"
import http.client, json, os, sys, threading, time, urllib.parse
URL, TOKEN, MODEL = (os.environ["MODEL_" + name] for name in ("GATEWAY_URL", "GATEWAY_TOKEN", "NAME"))
place = urllib.parse.urlsplit(URL)
def send(body):
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=120)
    connection.request("POST", "/v1/messages", body, {"content-type": "application/json", "x-api-key": TOKEN})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()
def body(content, more=b""):
    said = json.dumps([{"role": "user", "content": content}]).encode()
    return b'{"model":"%s","max_tokens":64,%s"messages":%s}' % (MODEL.encode(), more, said)
status, text = send(body("first"))
assert status == 200, text
values = [b"0", b"[]", b"{}", b'{"":0}']
def flood(index):
    value = values[index % len(values)]
    long = body("x", b'"metadata":{"a":[' + (value + b",") * ((32 * 1024 * 1024 - 4096) // (len(value) + 1)) + b"0]},")
    try:
        for _ in range(40):
            status, text = send(long)
            if status != 429:
                break
            time.sleep(0.5)
    except OSError as error:
        status, text = 0, repr(error)
    found.append((status, text))
found = []
threads = [threading.Thread(target=flood, args=(index,)) for index in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
for status, text in found:
    if status != 400 or "too many values" not in text:
        print("OUTCOME: FAIL", status, text[:200]); sys.exit(0)
image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * (20 << 20)}}
status, text = send(body([{"type": "text", "text": "see"}, image]))
if status != 200:
    print("OUTCOME: FAIL image", status, text[:200]); sys.exit(0)
print("OUTCOME: SUCCESS")
"#;

/// Maximum peak in bytes. It covers the request bodies, their JSON and the host itself. See docs/agents.md.
const PEAK_BYTES_MAX: u64 = 640 << 20;

/// Returns the peak resident memory of a process in bytes, or `None` if it has ended.
fn peak_bytes(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() << 10)
}

#[test]
fn sixteen_long_requests_at_once_are_refused_within_the_bound() {
    let bench = Bench::unpriced(PIPELINE, "anthropic", &[Turn::text("fine").repeat()]);
    bench.write("tools/agent.py", PROGRAM);
    bench.write("src/a.txt", "old\n");
    let mut run = bench.start_run(1);
    let (mut peak, began) = (0, Instant::now());
    let status = loop {
        peak = peak.max(peak_bytes(run.id()).unwrap_or_default());
        if let Some(status) = run.try_wait().unwrap() {
            break status;
        }
        assert!(began.elapsed() < Duration::from_secs(300), "the run has no end");
        std::thread::sleep(Duration::from_millis(10));
    };
    println!("peak of the host: {} MiB", peak >> 20);
    assert_eq!(status.code(), Some(0), "{}", bench.glovebox(&["show", "r", "build"]).stdout);
    assert!(peak > 0 && peak < PEAK_BYTES_MAX, "the host took {} MiB", peak >> 20);
    bench.glovebox(&["show", "r", "build"]).ends(0).says("too many values");
}
