//! Stand-ins for agent programs, in Python. They send requests to the gateway of their stage, as the real programs do.

use super::{Bench, Turn};

/// Returns a pipeline whose only stage is a Python program. `more` are additional attributes of the node.
pub(crate) fn pipeline(more: &str) -> String {
    format!(
        "digraph ship {{
  graph [goal=\"mend it\"]
  start [shape=Mdiamond]
  build [prompt=\"Do: $goal\", agent.backend=\"exec\", agent.command=\"python3 tools/agent.py\", allowed_write_paths=\"src/\"{more}]
  exit [shape=Msquare]
  start -> build -> exit
}}
"
    )
}

/// The first part of every stand-in.
pub(crate) const PRELUDE: &str = r#"
import json, os, sys, urllib.request, urllib.error
URL, TOKEN, MODEL = (os.environ["MODEL_" + name] for name in ("GATEWAY_URL", "GATEWAY_TOKEN", "NAME"))
def send(path, body, token=TOKEN, method="POST"):
    headers = {"content-type": "application/json", "x-api-key": token}
    request = urllib.request.Request(URL + path, json.dumps(body).encode() if body is not None else None, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
def ask(text, path="/v1/messages", token=TOKEN, **more):
    body = {"model": MODEL, "max_tokens": 64, "stream": True, "messages": [{"role": "user", "content": text}]}
    body.update(more)
    return send(path, body, token)
"#;

/// Creates a workbench with this stand-in as its agent program, and a provider with these answers.
pub(crate) fn bench(more: &str, program: &str, turns: &[Turn]) -> Bench {
    let bench = Bench::new(&pipeline(more), "anthropic", turns);
    bench.write("tools/agent.py", &format!("{PRELUDE}{program}"));
    bench.write("src/a.txt", "old\n");
    bench
}
