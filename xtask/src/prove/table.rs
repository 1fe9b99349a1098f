//! Sums up the lines of a survey.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

#[derive(Default)]
struct Row {
    counts: BTreeMap<String, u64>,
    seconds: f64,
    longest: f64,
}

const OUTCOMES: [&str; 7] =
    ["proven", "undecided", "wrong", "panicked", "unanswered", "refused", "not defined"];

fn lines(folder: &Path) -> Result<Vec<Value>> {
    let mut by_index = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            for line in fs::read_to_string(&path)?.lines() {
                if let Ok(value) = serde_json::from_str::<Value>(line) {
                    by_index.insert(value["index"].as_u64(), value);
                }
            }
        }
    }
    Ok(by_index.into_values().collect())
}

/// The table, by kind of run and by quantity.
fn summary(folder: &Path) -> Result<String> {
    let lines = lines(folder)?;
    let mut text = String::from(
        "| runs | proven | undecided | wrong | panicked | unanswered | refused | not defined | mean s | longest s |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let mut add = |name: &str, chosen: &dyn Fn(&Value) -> bool| {
        let mut row = Row::default();
        for line in lines.iter().filter(|line| chosen(line)) {
            *row.counts.entry(line["outcome"].as_str().unwrap_or("").into()).or_default() += 1;
            let seconds = line["proof_s"].as_f64().unwrap_or(0.0);
            row.seconds += seconds;
            row.longest = row.longest.max(seconds);
        }
        let total: u64 = row.counts.values().sum();
        if total == 0 {
            return;
        }
        let counts: Vec<String> = OUTCOMES
            .iter()
            .map(|one| row.counts.get(*one).copied().unwrap_or(0).to_string())
            .collect();
        text += &format!(
            "| {name} | {} | {:.2} | {:.1} |\n",
            counts.join(" | "),
            row.seconds / total as f64,
            row.longest
        );
    };
    add("all", &|_| true);
    // The name of a kind is the way to draw batches or the lens, then what is special about the run.
    let named = |line: &Value, part: &str| {
        line["kind"].as_str().is_some_and(|kind| kind.split(", ").any(|one| one == part))
    };
    let mut kinds: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["kind"].as_str().and_then(|kind| kind.split(", ").next()))
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds.into_iter().chain(["phases", "group", "substitution", "zero-out"]) {
        add(kind, &|line| named(line, kind));
    }
    let mut quantities: Vec<String> =
        lines.iter().filter_map(|line| line["quantity"].as_str().map(str::to_owned)).collect();
    quantities.sort();
    quantities.dedup();
    for quantity in &quantities {
        add(&format!("*{quantity}*"), &|line| line["quantity"] == quantity.as_str());
    }
    Ok(text)
}

/// How often something was met, and in which kinds of runs.
#[derive(Default)]
struct Reasons(BTreeMap<String, BTreeMap<String, u64>>);

impl Reasons {
    fn add(&mut self, line: &Value, reason: &str) {
        let kind = line["kind"].as_str().unwrap_or("").split(", ").next().unwrap_or("").to_owned();
        let kinds = self.0.entry(without_numbers(reason)).or_default();
        *kinds.entry(kind).or_default() += 1;
    }

    fn table(&self, title: &str) -> String {
        let mut rows: Vec<_> = self
            .0
            .iter()
            .map(|(reason, kinds)| (kinds.values().sum::<u64>(), reason, kinds))
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.0));
        let mut text = format!("| {title} | runs | of which |\n|---|--:|---|\n");
        for (count, reason, kinds) in rows {
            let kinds: Vec<String> =
                kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
            text += &format!("| {reason} | {count} | {} |\n", kinds.join(", "));
        }
        text
    }
}

/// Why proofs stayed undecided, by the first end that did, and why there was nothing to prove; numbers are left out.
fn reasons(folder: &Path) -> Result<String> {
    let (mut undecided, mut silent) = (Reasons::default(), Reasons::default());
    for line in lines(folder)? {
        match line["outcome"].as_str().unwrap_or("") {
            "undecided" => {
                let end = if line["lower"].is_object() { &line["lower"] } else { &line["upper"] };
                undecided.add(&line, end["statement"].as_str().unwrap_or("no reason given"));
            }
            "unanswered" | "refused" | "not defined" => {
                silent.add(&line, cause(line["reason"].as_str().unwrap_or("no reason given")));
            }
            _ => {}
        }
    }
    let undecided = undecided.table("undecided because");
    Ok(format!("{undecided}\n{}", silent.table("no answer, because")))
}

/// What a refusal comes down to: the end of its first sentence, without what is known so far.
fn cause(reason: &str) -> &str {
    let first = reason.split("; ").find(|part| part.contains("left out")).unwrap_or(reason);
    let first = first.split("; ").next().unwrap_or(first);
    if first.contains("processor time") {
        return "the time limit is spent";
    }
    first.rsplit(": ").next().unwrap_or(first)
}

/// A sentence with "#" for each of its numbers.
fn without_numbers(text: &str) -> String {
    let number = |word: &str| {
        let inner = word.trim_matches(|c: char| "(),^".contains(c));
        inner.parse::<f64>().is_ok()
    };
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        // Such as "delta(0.5)" and "e^0.1".
        let (head, tail) = word.split_once(['(', '^']).unwrap_or(("", word));
        if number(tail) {
            let sign = word.chars().nth(head.chars().count()).filter(|_| !head.is_empty());
            let close = if sign == Some('(') { ")" } else { "" };
            words.push(format!("{head}{}#{close}", sign.map(String::from).unwrap_or_default()));
        } else {
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}

/// All tables.
pub fn text(folder: &Path) -> Result<String> {
    Ok(format!("{}\n{}", summary(folder)?, reasons(folder)?))
}

const BEGIN: &str = "<!-- survey of proofs: begin -->";
const END: &str = "<!-- survey of proofs: end -->";

/// Writes the table between its marks in docs/accuracy.md.
pub fn write(folder: &Path, command: &str) -> Result<ExitCode> {
    let path = "docs/accuracy.md";
    let page = fs::read_to_string(path)?;
    let (head, rest) = page.split_once(BEGIN).with_context(|| format!("{path} lacks `{BEGIN}`"))?;
    let (_, tail) = rest.split_once(END).with_context(|| format!("{path} lacks `{END}`"))?;
    let count = lines(folder)?.len();
    let table = text(folder)?;
    let text = format!("{head}{BEGIN}\n`{command}` ({count} runs so far):\n\n{table}{END}{tail}");
    fs::write(path, text)?;
    println!("{table}");
    Ok(ExitCode::SUCCESS)
}
