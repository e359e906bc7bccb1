//! The OpenAPI document of the server, made from [`ROUTES`].

use crate::route::{Answer, Body, Field, ROUTES, Route, Verb};
use serde_json::{Map, Value, json};

/// Returns the document as JSON.
pub fn document() -> String {
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.verb.as_str().to_ascii_lowercase()] = operation(route);
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Glovebox", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": { "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } } },
    });
    format!("{document:#}\n")
}

fn operation(route: &Route) -> Value {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path =
        in_path.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let in_query = route.query.iter().map(|field| {
        json!({ "name": field.name, "in": "query", "description": field.about, "schema": { "type": field.kind } })
    });
    let parameters: Vec<Value> = in_path.chain(in_query).collect();
    let mut operation = json!({
        "summary": route.about,
        "parameters": parameters,
        "responses": { "200": answer(route.answer), "default": { "description": "A problem." } },
    });
    if let Some(right) = route.right {
        operation["security"] = json!([{ "token": [] }]);
        operation["x-right"] = right.as_str().into();
    }
    if !route.command.is_empty() {
        operation["x-command"] = route.command.into();
    }
    let body = match route.body {
        Body::None => None,
        Body::Json(fields) => Some(json!({ "application/json": { "schema": object(fields) } })),
        Body::Pipeline(fields) => Some(json!({
            "application/json": { "schema": object(fields) },
            "text/vnd.graphviz": { "schema": { "type": "string" } },
        })),
    };
    if let (Some(content), Verb::Post) = (body, route.verb) {
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    operation
}

fn object(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| (field.name.to_owned(), json!({ "type": field.kind, "description": field.about })))
        .collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn answer(answer: Answer) -> Value {
    let (media, about) = match answer {
        Answer::Document(schema) => ("application/json", format!("A document with the schema `{schema}`.")),
        Answer::Lines(schema) => ("application/x-ndjson", format!("Lines with the schema `{schema}`.")),
        Answer::Events => ("text/event-stream", "Server-sent events.".to_owned()),
        Answer::Bytes(media) => (media, "The bytes.".to_owned()),
    };
    json!({ "description": about, "content": { media: {} } })
}
