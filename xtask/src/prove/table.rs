//! Sums up the lines of a survey.

use super::kept::{Line, Lines};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;

#[derive(Default)]
struct Row {
    counts: BTreeMap<String, u64>,
    seconds: f64,
    longest: f64,
}

const OUTCOMES: [&str; 7] =
    ["proven", "undecided", "wrong", "panicked", "unanswered", "refused", "not defined"];

/// The table, by kind of run and by quantity.
fn summary(lines: &Lines) -> String {
    let mut text = String::from(
        "| runs | proven | undecided | wrong | panicked | unanswered | refused | not defined | mean s | longest s |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let mut add = |name: &str, chosen: &dyn Fn(&Line) -> bool| {
        let mut row = Row::default();
        for line in lines.values().filter(|line| chosen(line)) {
            *row.counts.entry(line.outcome.clone()).or_default() += 1;
            row.seconds += line.proof_s;
            row.longest = row.longest.max(line.proof_s);
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
    let named = |line: &Line, part: &str| line.kind.split(", ").any(|one| one == part);
    let mut kinds: Vec<&str> =
        lines.values().filter_map(|line| line.kind.split(", ").next()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds.into_iter().chain(["phases", "group", "substitution", "zero-out"]) {
        add(kind, &|line| named(line, kind));
    }
    let mut quantities: Vec<&str> = lines.values().map(|line| line.quantity.as_str()).collect();
    quantities.sort_unstable();
    quantities.dedup();
    for quantity in quantities {
        add(&format!("*{quantity}*"), &|line| line.quantity == quantity);
    }
    text
}

/// How often something was met, and in which kinds of runs.
#[derive(Default)]
struct Reasons(BTreeMap<String, BTreeMap<String, u64>>);

impl Reasons {
    fn add(&mut self, line: &Line) {
        let kind = line.kind.split(", ").next().unwrap_or("").to_owned();
        let kinds = self.0.entry(line.reason.clone()).or_default();
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
fn reasons(lines: &Lines) -> String {
    let (mut undecided, mut silent) = (Reasons::default(), Reasons::default());
    for line in lines.values() {
        match line.outcome.as_str() {
            "undecided" => undecided.add(line),
            "unanswered" | "refused" | "not defined" => silent.add(line),
            _ => {}
        }
    }
    let undecided = undecided.table("undecided because");
    format!("{undecided}\n{}", silent.table("no answer, because"))
}

/// Under which limits the lines came to be, and by which builds.
fn limits(lines: &Lines) -> String {
    let mut passes: BTreeMap<String, u64> = BTreeMap::new();
    let mut builds: BTreeMap<&str, u64> = BTreeMap::new();
    for line in lines.values() {
        let pass = format!("--work {} --seconds {}", line.work, line.seconds);
        *passes.entry(pass).or_default() += 1;
        *builds.entry(&line.build).or_default() += 1;
    }
    let passes: Vec<String> =
        passes.iter().map(|(pass, count)| format!("`{pass}` {count}")).collect();
    let builds: Vec<String> =
        builds.iter().map(|(build, count)| format!("{build} {count}")).collect();
    format!(
        "Runs by the limits of their latest attempt: {}; by commit: {}.",
        passes.join(", "),
        builds.join(", ")
    )
}

/// What a refusal comes down to: the end of its first sentence, without what is known so far.
pub fn cause(reason: &str) -> &str {
    let first = reason.split("; ").find(|part| part.contains("left out")).unwrap_or(reason);
    let first = first.split("; ").next().unwrap_or(first);
    if first.contains("processor time") {
        return "the time limit is spent";
    }
    first.rsplit(": ").next().unwrap_or(first)
}

/// A sentence with "#" for each of its numbers.
pub fn without_numbers(text: &str) -> String {
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
pub fn text(lines: &Lines) -> String {
    format!("{}\n{}", summary(lines), reasons(lines))
}

const BEGIN: &str = "<!-- survey of proofs: begin -->";
const END: &str = "<!-- survey of proofs: end -->";

/// Writes the table between its marks in docs/accuracy.md.
pub fn write(lines: &Lines, runs: u64, seed: u64) -> Result<ExitCode> {
    let path = "docs/accuracy.md";
    let page = fs::read_to_string(path)?;
    let (head, rest) = page.split_once(BEGIN).with_context(|| format!("{path} lacks `{BEGIN}`"))?;
    let (_, tail) = rest.split_once(END).with_context(|| format!("{path} lacks `{END}`"))?;
    let (count, limits, table) = (lines.len(), limits(lines), text(lines));
    let command = format!("cargo xtask prove --runs {runs} --seed {seed}");
    let text = format!(
        "{head}{BEGIN}\n`{command}`, then with `--retry` ({count} runs so far). {limits}\n\n{table}{END}{tail}"
    );
    fs::write(path, text)?;
    println!("{table}");
    Ok(ExitCode::SUCCESS)
}
