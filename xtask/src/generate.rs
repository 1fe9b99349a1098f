//! `cargo xtask generate`: names that Python and the page must know, from the vocabulary. The
//! gate fails when a file is stale.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;
use std::fmt::Write;
use vocabulary::{
    Adjacency, Direction, LensName, Method, Permutation, Quantity, Release, Sampling, Secret, Side,
    Standing, Stopped,
};

/// The generated files, relative to the root, with their text.
pub(crate) fn files() -> Vec<(&'static str, String)> {
    let sets = [
        ("Lens", names::<LensName>()),
        ("Method", names::<Method>()),
        ("Quantity", names::<Quantity>()),
        ("Sampling", names::<Sampling>()),
        ("Adjacency", names::<Adjacency>()),
        ("Permutation", names::<Permutation>()),
        ("Stopped", names::<Stopped>()),
        ("Release", names::<Release>()),
        ("Secret", names::<Secret>()),
        ("Direction", names::<Direction>()),
        ("Standing", names::<Standing>()),
        ("Side", names::<Side>()),
    ];
    vec![("python/dosimeter/_names.py", python(&sets)), ("web/src/names.ts", typescript(&sets))]
}

/// The names of a closed set, as the documents spell them.
fn names<T: JsonSchema>() -> Vec<String> {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>();
    let mut found = Vec::new();
    collect(schema.as_value(), &mut found);
    assert!(!found.is_empty(), "{} has no names", T::schema_name());
    found
}

/// A set without comments is an `enum`; one with comments a list of `const`s.
fn collect(schema: &Value, found: &mut Vec<String>) {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(one) = schema.get("const") {
        found.extend(text(one));
    }
    for name in schema.get("enum").and_then(Value::as_array).into_iter().flatten() {
        found.extend(text(name));
    }
    for part in schema.get("oneOf").and_then(Value::as_array).into_iter().flatten() {
        collect(part, found);
    }
}

fn python(sets: &[(&str, Vec<String>)]) -> String {
    let mut text = String::from(
        "\"\"\"Names with a closed set of values, as the documents spell them.\n\n\
         Made by ``cargo xtask generate`` from the vocabulary; do not edit.\n\"\"\"\n\n\
         from __future__ import annotations\n\nfrom typing import Literal, TypeAlias\n\n",
    );
    for (name, values) in sets {
        let _ = writeln!(text, "{name}: TypeAlias = Literal[");
        for value in values {
            let _ = writeln!(text, "    \"{value}\",");
        }
        text.push_str("]\n");
    }
    text
}

fn typescript(sets: &[(&str, Vec<String>)]) -> String {
    let mut text = String::from(
        "// Names with a closed set of values, as the documents spell them.\n\
         // Made by `cargo xtask generate` from the vocabulary; do not edit.\n",
    );
    for (name, values) in sets {
        let quoted: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
        let _ = write!(text, "\nexport type {name} =\n  | {};\n", quoted.join("\n  | "));
    }
    text
}
