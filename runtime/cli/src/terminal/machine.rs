//! Diagnostics in the formats of other programs: SARIF 2.1.0 for code scanning, workflow commands for GitHub.
//!
//! The texts come from the user's files. In workflow commands, every character that could end a field or begin another
//! command is escaped.

use super::diagnostics::{Findings, line_and_column};
use super::visible;
use glovebox_pipeline::diagnostic::{Diagnostic, Edit, Severity};
use glovebox_pipeline::lint::RULES;
use glovebox_pipeline::span::Span;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Returns one SARIF log with one run.
pub fn sarif(checked: &[Findings]) -> Value {
    let rules: Vec<Value> = RULES
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": { "text": rule.summary },
                "fullDescription": { "text": rule.why },
                "help": { "text": rule.help },
                "defaultConfiguration": { "level": level(rule.severity) },
            })
        })
        .collect();
    let results = checked
        .iter()
        .flat_map(|findings| findings.diagnostics.iter().map(move |diagnostic| result(findings, diagnostic)))
        .collect();
    log(rules, results)
}

/// Returns one SARIF log for findings of these rules. Each rule has a name, a severity and a meaning.
pub fn sarif_of(rules: &[(&str, Severity, &str)], findings: &Findings) -> Value {
    let described = rules.iter().map(|(id, severity, summary)| {
        json!({ "id": id, "shortDescription": { "text": summary }, "defaultConfiguration": { "level": level(*severity) } })
    });
    let results = findings.diagnostics.iter().map(|diagnostic| {
        let mut result = result(findings, diagnostic);
        result["ruleIndex"] = rules.iter().position(|(id, ..)| *id == diagnostic.rule).into();
        result
    });
    log(described.collect(), results.collect())
}

fn log(rules: Vec<Value>, results: Vec<Value>) -> Value {
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "glovebox", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn result(findings: &Findings, diagnostic: &Diagnostic) -> Value {
    let help = diagnostic.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    let text = format!("{}{help}", diagnostic.message);
    let mut result = json!({
        "ruleId": diagnostic.rule,
        "level": level(diagnostic.severity),
        "message": { "text": text },
        "locations": [location(findings, diagnostic.span)],
    });
    // The table does not contain custom rules.
    if let Some(index) = RULES.iter().position(|rule| rule.id == diagnostic.rule) {
        result["ruleIndex"] = index.into();
    }
    if !diagnostic.labels.is_empty() {
        let related = diagnostic.labels.iter().map(|label| {
            let mut related = location(findings, label.span);
            related["message"] = json!({ "text": label.text });
            related
        });
        result["relatedLocations"] = related.collect();
    }
    if let Some(fix) = &diagnostic.fix {
        result["fixes"] = json!([change(findings, fix)]);
    }
    result
}

fn location(findings: &Findings, span: Span) -> Value {
    json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(Path::new(&findings.file)) },
            "region": region(findings, span),
        },
    })
}

fn change(findings: &Findings, fix: &Edit) -> Value {
    json!({
        "artifactChanges": [{
            "artifactLocation": { "uri": uri(Path::new(&findings.file)) },
            "replacements": [{
                "deletedRegion": region(findings, fix.span),
                "insertedContent": { "text": fix.replacement },
            }],
        }],
    })
}

fn region(findings: &Findings, span: Span) -> Value {
    let (line, column) = line_and_column(findings.source(), span.start);
    let (end_line, end_column) = line_and_column(findings.source(), span.end);
    json!({ "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column })
}

/// Returns a file as SARIF requires it: relative without a leading `.`, or absolute with its scheme.
fn uri(file: &Path) -> String {
    let file = file.to_string_lossy();
    let mut rest = &*file;
    while let Some(inner) = rest.strip_prefix("./") {
        rest = inner.trim_start_matches('/');
    }
    let mut uri = String::with_capacity(file.len());
    if rest.starts_with('/') {
        uri.push_str("file://");
    }
    for byte in rest.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            write!(uri, "%{byte:02X}").expect("writing to a string does not fail");
        }
    }
    uri
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// Returns one workflow command for each diagnostic, which GitHub shows next to the line.
pub fn github(checked: &[Findings]) -> String {
    let mut text = String::new();
    for findings in checked {
        for diagnostic in &findings.diagnostics {
            let command = match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Info => "notice",
            };
            let (line, column) = line_and_column(findings.source(), diagnostic.span.start);
            let (file, rule) = (property(&findings.file), property(&diagnostic.rule));
            let help = diagnostic.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
            let message = payload(&visible::block(&format!("{}{help}", diagnostic.message)));
            text.push_str(&format!("::{command} file={file},line={line},col={column},title={rule}::{message}\n"));
        }
    }
    text
}

fn payload(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    payload(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Findings {
        let source = "digraph g {\n  ä [shape=blob]\n}\n".to_owned();
        let start = source.find("blob").unwrap();
        let span = Span::new(start, start + 4);
        let diagnostic = Diagnostic::error("shape_known", "no shape `blob`: 100%\n::error::forged", span)
            .with_fix(span, "box")
            .with_label(Span::new(0, 7), "here");
        Findings { file: "a b,c.dot".to_owned(), source, diagnostics: vec![diagnostic] }
    }

    #[test]
    fn a_workflow_command_is_one_line_whatever_the_text() {
        assert_eq!(
            github(&[findings()]),
            "::error file=a b%2Cc.dot,line=2,col=12,title=shape_known::no shape `blob`: 100%25%0A\\x3a:error::forged\n"
        );
    }

    #[test]
    fn files_are_references() {
        for (file, reference) in [
            ("a/b.dot", "a/b.dot"),
            ("././/a b.dot", "a%20b.dot"),
            ("../a.dot", "../a.dot"),
            ("/srv/ä:b.dot", "file:///srv/%C3%A4%3Ab.dot"),
        ] {
            assert_eq!(uri(Path::new(file)), reference);
        }
    }

    #[test]
    fn a_sarif_result_says_where_and_what_mends_it() {
        let log = sarif(&[findings()]);
        let result = &log["runs"][0]["results"][0];
        assert_eq!(result["ruleId"], "shape_known");
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(log["runs"][0]["tool"]["driver"]["rules"][index]["id"], "shape_known");
        let region = json!({ "startLine": 2, "startColumn": 12, "endLine": 2, "endColumn": 16 });
        assert_eq!(result["locations"][0]["physicalLocation"]["region"], region);
        assert_eq!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "a%20b%2Cc.dot");
        let replacement = &result["fixes"][0]["artifactChanges"][0]["replacements"][0];
        assert_eq!((&replacement["deletedRegion"], &replacement["insertedContent"]["text"]), (&region, &"box".into()));
        assert_eq!(result["relatedLocations"][0]["message"]["text"], "here");
        assert_eq!(log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap().len(), RULES.len());
    }
}
