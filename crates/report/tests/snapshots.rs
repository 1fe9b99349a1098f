//! What programs and people rely on: the structure of the JSON, and the model card.

mod support;

use serde_json::Value;

/// The keys of a document as an indented list; a list shows its first element.
fn structure(value: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(entries) => {
            for (key, entry) in entries {
                let kind = match entry {
                    Value::Null => "null",
                    Value::Bool(_) => "boolean",
                    Value::Number(_) => "number",
                    Value::String(_) => "string",
                    Value::Array(_) => "list",
                    Value::Object(_) => "object",
                };
                text.push_str(&format!("{indent}{key}: {kind}\n"));
                structure(entry, depth + 1, text);
            }
        }
        Value::Array(items) => {
            if let Some(first) = items.first() {
                structure(first, depth + 1, text);
            }
        }
        _ => {}
    }
}

#[test]
fn structure_of_the_document() {
    let mut json = serde_json::to_value(support::full()).unwrap();
    // The audit and the figures have documents of their own, with snapshots of their own.
    json["audit"] = Value::String("dosimeter.audit/1".into());
    for shown in json["figures"].as_array_mut().unwrap() {
        shown["figure"] = Value::String("dosimeter.figure/1".into());
    }
    let mut text = String::new();
    structure(&json, 0, &mut text);
    insta::assert_snapshot!(text);
}

#[test]
fn model_card() {
    insta::assert_snapshot!(report::markdown(&support::full()));
}

#[test]
fn statement() {
    insta::assert_snapshot!(report::statement(&support::account(), 1e-5).join("\n\n"));
}
