//! From the arguments of a call to what it asks for. They become the parts of a request, so that the checks of the routes
//! hold here too: ids are no paths, files are inside of the project, nothing unknown is ignored.

use crate::tool::{Function, Tool};
use glovebox_record::Digest;
use glovebox_serve::desk::Problem;
use glovebox_serve::parse::{self, Parts, Wanted};
use glovebox_serve::route::{Body, ROUTES, Route};
use serde_json::{Map, Value};

/// Checks that the arguments are those of the tool, each with its type, and that none is missing.
pub(crate) fn check(tool: &Tool, arguments: &Map<String, Value>) -> Result<(), Problem> {
    for (name, value) in arguments {
        let Some(field) = tool.arguments().find(|field| field.name == name) else {
            let known: Vec<&str> = tool.arguments().map(|field| field.name).collect();
            return Err(bad(format!("`{}` has an unknown argument; it takes: {}", tool.name, known.join(", "))));
        };
        let is_of_kind = match field.kind {
            "integer" => value.is_u64(),
            "object" => value.as_object().is_some_and(|object| object.values().all(Value::is_string)),
            "array" => value.as_array().is_some_and(|array| array.iter().all(Value::is_string)),
            _ => value.is_string(),
        };
        if !is_of_kind {
            return Err(bad(format!("argument `{name}` of `{}` is not of type {}", tool.name, field.kind)));
        }
    }
    match tool.required.iter().find(|name| !arguments.contains_key(**name)) {
        Some(name) => Err(bad(format!("`{}` needs the argument `{name}`", tool.name))),
        None => Ok(()),
    }
}

/// Returns what a checked call asks for. `head` is the hash of the last record that the client has seen of the run.
pub(crate) fn wanted(tool: &Tool, arguments: &Map<String, Value>, head: Option<Digest>) -> Result<Wanted, Problem> {
    let Some(route) = route(tool) else { return Err(bad("this tool has no route")) };
    let (mut parts, mut body) = (Parts::default(), Map::new());
    for (name, value) in arguments {
        let segment = if name == "run" { "id" } else { name };
        let text = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if route.path.contains(&format!("{{{segment}}}")) {
            parts.path.insert(segment.to_owned(), text());
        } else if route.query.iter().any(|field| field.name == name) {
            parts.query.insert(name.clone(), text());
        } else {
            body.insert(name.clone(), value.clone());
        }
    }
    if let Some(head) = head {
        body.insert("head".to_owned(), head.to_string().into());
    }
    if !matches!(route.body, Body::None) {
        parts.media = Some("application/json".to_owned());
        parts.body = Value::Object(body).to_string().into_bytes();
    }
    parse::wanted(route, &parts)
}

/// Returns the route with the function of a tool. A function with two routes has the names of this product in the last.
fn route(tool: &Tool) -> Option<&'static Route> {
    ROUTES.iter().rfind(|route| tool.function == Function::Route(route.endpoint))
}

pub(crate) fn bad(message: impl Into<String>) -> Problem {
    Problem::new(400, "usage", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::TOOLS;
    use glovebox_serve::desk::{Act, Read};
    use serde_json::json;

    fn of(name: &str, arguments: Value) -> Result<Wanted, String> {
        let tool = TOOLS.iter().find(|tool| tool.name == name).unwrap();
        let arguments = arguments.as_object().unwrap();
        check(tool, arguments).and_then(|()| wanted(tool, arguments, None)).map_err(|problem| problem.message)
    }

    #[test]
    fn arguments_become_what_a_route_asks_for() {
        assert_eq!(of("run", json!({ "run": "r" })), Ok(Wanted::Read(Read::Run("r".into()))));
        assert_eq!(
            of("why", json!({ "run": "r", "node": "a" })),
            Ok(Wanted::Read(Read::Why("r".into(), Some("a".into()))))
        );
        let steer = Act::Steer { run: "r".into(), node: "a".into(), text: "t".into() };
        assert_eq!(of("steer", json!({ "run": "r", "node": "a", "text": "t" })), Ok(Wanted::Act(steer)));
        assert!(matches!(of("runs", json!({ "limit": 3 })), Ok(Wanted::Read(Read::Runs { limit: 3, .. }))));
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (name, arguments, words) in [
            ("run", json!({}), "needs the argument `run`"),
            ("run", json!({ "run": 7 }), "not of type string"),
            ("run", json!({ "run": "../x" }), "not the id of a run"),
            ("run", json!({ "run": "r", "sandbox": "none" }), "unknown argument"),
            ("runs", json!({ "limit": "3" }), "not of type integer"),
            ("runs", json!({ "limit": -3 }), "not of type integer"),
            ("plan", json!({ "file": "/etc/passwd" }), "below the project"),
            ("plan", json!({ "file": "a/../../x" }), "below the project"),
            ("plan", json!({ "file": "--help" }), "below the project"),
            ("plan", json!({ "dot": "a", "file": "b" }), "either `dot` or `file`"),
            ("plan", json!({ "dot": "a", "inputs": { "x": 1 } }), "not of type object"),
            ("start", json!({ "dot": "a", "plan_digest": "blake3:1" }), "the body is not as described"),
            ("apply", json!({ "run": "r", "paths": [1] }), "not of type array"),
        ] {
            let message = of(name, arguments.clone()).unwrap_err();
            assert!(message.contains(words), "{name} {arguments}: {message}");
        }
    }
}
