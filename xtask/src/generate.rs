//! `cargo xtask generate`: names that Python and the page must know, from the vocabulary. The
//! gate fails when a file is stale.

use accounting::domain;
use accounting::lenses::Lens;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;
use std::fmt::Write;
use vocabulary::{
    Adjacency, At, Direction, LensName, Method, NOTHING_TO_SIGN, Permutation, Quantity, Release,
    SCHEMAS, Sampling, Secret, Side, Standing, Status, Stopped,
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
        ("VerdictStatus", names::<Status>()),
        ("Schema", SCHEMAS.iter().map(|name| (*name).to_owned()).collect()),
    ];
    let page = typescript(&sets) + &words() + &limits();
    let python = python(&sets) + &moves_others() + &roles();
    vec![("python/dosimeter/_names.py", python), ("web/src/names.ts", page)]
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

/// Ways to draw batches in which adding or removing a record is not covered.
fn moves_others() -> String {
    let mut text = String::from(
        "#: A record that is added or removed changes the batches of the others.\n\
         MOVES_OTHERS: tuple[Sampling, ...] = (\n",
    );
    for (name, _) in Sampling::ALL.iter().filter(|(_, sampling)| sampling.moves_others()) {
        let _ = writeln!(text, "    \"{name}\",");
    }
    text + ")\n"
}

/// Lenses by what they are asked for.
fn roles() -> String {
    let role = |name: &str, means: &str, lens: LensName| {
        format!("#: {means}\n{name}: Lens = \"{lens}\"\n")
    };
    let signed = "The lens whose number may be signed, and which is asked where none is named.";
    let mut text = role("SIGNED", signed, LensName::SIGNED)
        + &role("BESIDE", "The heuristic to read beside it.", LensName::BESIDE)
        + "#: The lenses that say something about a secret attribute.\n\
           ABOUT_ATTRIBUTES: tuple[Lens, ...] = (\n";
    for lens in Lens::about_attributes() {
        let _ = writeln!(text, "    \"{}\",", lens.name);
    }
    text + ")\n"
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

/// What the names are called, and what a standing means, in the words of every door.
fn words() -> String {
    let all = |standing: Standing| (standing.as_str(), vocabulary::words::meaning(standing));
    let standings =
        [Standing::Proven, Standing::Heuristic, Standing::Estimate, Standing::Measured].map(all);
    let lenses = LensName::ALL.map(|lens| (lens.as_str(), lens.label()));
    let titles: Vec<(String, String)> = names::<Quantity>()
        .into_iter()
        .filter_map(|name| {
            let quantity: Quantity = serde_json::from_value(Value::from(name.as_str())).ok()?;
            Some((name, vocabulary::words::title(quantity, At::default())))
        })
        .collect();
    let samplings = Sampling::ALL.iter().map(|(name, sampling)| (*name, sampling.label()));
    let quantities = titles.iter().map(|(name, title)| (name.as_str(), title.as_str()));
    let verdicts: Vec<(String, &str)> = names::<Status>()
        .into_iter()
        .filter_map(|name| {
            let status: Status = serde_json::from_value(Value::from(name.as_str())).ok()?;
            Some((name, status.meaning()))
        })
        .collect();
    let verdicts = verdicts.iter().map(|(name, means)| (name.as_str(), *means));
    let neighbours = Adjacency::ALL.iter().map(|(name, one)| (*name, one.label()));
    let coins = Sampling::ALL.iter().filter(|(_, one)| one.by_coins()).map(|(name, _)| *name);
    let securities = Quantity::ALL.into_iter().filter(|one| !one.is_leakage());
    let certified = LensName::CERTIFIED.map(|lens| format!("\"{lens}\"")).join(", ");
    format!(
        "\nexport const SIGNED: Lens = \"{}\";\nexport const BESIDE: Lens = \"{}\";\n\
         export const CERTIFIED: Lens[] = [{certified}];\n",
        LensName::SIGNED,
        LensName::BESIDE
    ) + &list("BY_COINS", "Sampling", coins)
        + &list("AT_LEAST", "Quantity", securities.map(Quantity::as_str))
        + &format!("export const NOTHING_TO_SIGN = \"{NOTHING_TO_SIGN}\";\n")
        + &record("LENS_LABELS", "Lens", lenses.into_iter())
        + &record("STANDING_MEANS", "Standing", standings.into_iter())
        + &record("QUANTITY_LABELS", "Quantity", quantities)
        + &record("SAMPLING_LABELS", "Sampling", samplings)
        + &record("ADJACENCY_LABELS", "Adjacency", neighbours)
        + &record("VERDICT_MEANS", "VerdictStatus", verdicts)
}

/// The domain in which numbers are certified.
fn limits() -> String {
    let range = |name: &str, (low, high): (f64, f64)| {
        format!("  {name}: {{ least: {}, most: {} }},\n", Value::from(low), Value::from(high))
    };
    let steps = (domain::STEPS.0 as f64, domain::STEPS.1 as f64);
    "\nexport const DOMAIN = {\n".to_owned()
        + &range("noise", domain::NOISE_MULTIPLIER)
        + &range("rate", domain::SAMPLE_RATE)
        + &range("steps", steps)
        + &range("delta", domain::DELTA)
        + "};\n"
}

fn list<'a>(name: &str, of: &str, members: impl Iterator<Item = &'a str>) -> String {
    let members: Vec<String> = members.map(|member| format!("\"{member}\"")).collect();
    format!("export const {name}: {of}[] = [{}];\n", members.join(", "))
}

fn record<'a>(name: &str, keys: &str, entries: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = format!("\nexport const {name}: Record<{keys}, string> = {{\n");
    for (key, value) in entries {
        let _ = writeln!(text, "  \"{key}\": \"{value}\",");
    }
    text.push_str("};\n");
    text
}
