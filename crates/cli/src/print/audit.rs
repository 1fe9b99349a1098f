//! An audit for a person.

use super::{Align, TextTable, WIDTH, confidence, csv_line, plain, with_commas, wrap};
use audit::sequential::SequentialDocument;
use audit::{Audit, Design, Finding, Plan, TestAt};
use vocabulary::{Measured, Quoted, Status, Verdict};

/// What was decided, before there are scores.
pub(crate) fn commitment(plan: &Plan, hash: &str) -> String {
    let list = |items: Vec<String>| items.join(", ");
    let mut table = TextTable::new([("", Align::Left), ("", Align::Left)]);
    let mut row = |name: &str, value: String| {
        table.row([name.to_owned(), value]);
    };
    row("design", plan.design.to_string());
    row("primary", plan.primary.to_string());
    row("methods", list(plan.methods.iter().map(ToString::to_string).collect()));
    row("deltas", list(plan.deltas.iter().map(|delta| plain(*delta)).collect()));
    row("confidence", plain(plan.confidence));
    row("threshold", plan.threshold.to_string());
    row("direction", plan.direction.name().to_owned());
    row("joint", if plan.joint { "yes".to_owned() } else { "no".to_owned() });
    row("seed", plan.seed.to_string());
    if let Some((sample_rate, steps)) = plan.training {
        row("training", format!("sample rate {}, {steps} steps", plain(sample_rate)));
    }
    let mut text = format!("The plan of an audit, before any score\n{}", table.render(2));
    text.push_str(&format!("\nplan   {hash}\n"));
    text.push_str("  publish this line; the audit prints the same one when it keeps to the plan\n");
    text
}

/// One screen: the headline, all bounds, the attack, the verdict.
pub(crate) fn human(analysis: &Audit) -> String {
    let (m, n) = (analysis.members, analysis.nonmembers);
    let mut text = match analysis.design {
        Design::Runs => {
            let s = if m == 1 { "" } else { "s" };
            let t = if n == 1 { "" } else { "s" };
            format!(
                "{} member{s} and {} non-member{t}, each a training of its own\n\n",
                with_commas(m),
                with_commas(n)
            )
        }
        Design::OneRun => format!(
            "{} canaries of one training, {} in and {} out\n\n",
            with_commas(m + n),
            with_commas(m),
            with_commas(n)
        ),
    };
    if let Some(primary) = analysis.primary() {
        text.push_str(&headline(primary, analysis.plan.joint));
    }
    text.push_str(&verdict_line(analysis.verdict.as_ref()));
    if analysis.bounds.len() > 1 {
        let together = if analysis.plan.joint { "all of them together" } else { "each on its own" };
        text.push_str(&format!("\nBounds ({together})\n"));
        text.push_str(&table(&analysis.bounds));
    }
    text.push_str(&attack(analysis));
    if !analysis.not_valid.is_empty() {
        text.push_str("\nNot valid for these scores\n");
        for (reason, methods) in audit::by_reason(&analysis.not_valid) {
            let names = methods.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            text.push_str(&wrap(&format!("{names}: {reason}"), "  ", 4, WIDTH));
        }
    }
    text.push_str(&format!(
        "\nscores {}\nplan   {}\n",
        analysis.hashes.scores, analysis.hashes.plan
    ));
    text
}

/// An audit in the order of its trials.
pub(crate) fn sequential(document: &SequentialDocument) -> String {
    let bound = &document.bound;
    let mut text = format!(
        "{} trials in their order\n\nepsilon {} at delta {}, with {} at any stopping time\n  holds for {}\n",
        document.trials,
        bound.claim.shown(),
        plain(bound.delta()),
        standing(bound),
        bound.valid_for
    );
    text.push_str(&verdict_line(document.verdict.as_ref()));
    let evidence = document.looks.iter().any(|look| look.evidence.is_some());
    let mut table = TextTable::new([
        ("trials", Align::Right),
        ("epsilon", Align::Right),
        (if evidence { "evidence" } else { "" }, Align::Right),
    ]);
    for look in &document.looks {
        let evidence = look.evidence_at_least().map_or_else(String::new, |end| end.to_string());
        table.row([look.trials.to_string(), look.epsilon_at_least().shown(), evidence]);
    }
    text.push_str(&format!("\nOver time\n{}", table.render(2)));
    if evidence {
        text.push_str(&format!(
            "  evidence: logarithm; the claim is refuted at {}\n",
            document.enough_evidence()
        ));
    }
    text
}

/// What is said about the claim, where there is one.
fn verdict_line(verdict: Option<&Verdict>) -> String {
    let Some(verdict) = verdict else { return String::new() };
    let word = match verdict.status {
        Status::Contradiction => "CONTRADICTION",
        other => other.as_str(),
    };
    format!("\n{}", wrap(&format!("{word}: {}", verdict.reason), "Verdict: ", 9, WIDTH))
}

fn headline(bound: &Finding, joint: bool) -> String {
    let at = format!("at delta {}", plain(bound.delta()));
    let confidence = confidence(bound.level().unwrap_or(0.0));
    let joint = if joint { " (its share of the joint statement)" } else { "" };
    let mut text = if bound.epsilon() == f64::INFINITY {
        format!("epsilon is infinite {at}, with {confidence} confidence{joint}\n")
    } else if bound.epsilon() > 0.0 {
        format!("epsilon {} {at}, with {confidence} confidence{joint}\n", bound.claim.shown())
    } else {
        format!("no leakage is shown {at} (epsilon >= 0), with {confidence} confidence{joint}\n")
    };
    let rule = match &bound.threshold_rule {
        Some(rule) => format!(", threshold {rule}"),
        None => String::new(),
    };
    let mut how = format!("{}{rule}; holds for {}", bound.method(), bound.valid_for);
    match bound.tests.as_slice() {
        [
            TestAt::Threshold { threshold, false_positives, nonmembers, false_negatives, members },
        ] if bound.epsilon() > 0.0 => how.push_str(&format!(
            "; at score >= {}: {} of {} members and {} of {} non-members are called members",
            Quoted::about(*threshold),
            with_commas(members - false_negatives),
            with_commas(*members),
            with_commas(*false_positives),
            with_commas(*nonmembers),
        )),
        [TestAt::Guesses { guessed_in, guessed_out, right, .. }] => how.push_str(&format!(
            "; {} guesses ({} in, {} out), {} right",
            with_commas(guessed_in + guessed_out),
            with_commas(*guessed_in),
            with_commas(*guessed_out),
            with_commas(*right)
        )),
        _ => {}
    }
    text.push_str(&wrap(&how, "  ", 2, WIDTH));
    if let Some(upper) = bound.test_at_most().filter(|upper| upper.number().is_finite()) {
        let line = format!(
            "with more scores this test would show at most {upper} ({confidence} confidence); a better attack may show more"
        );
        text.push_str(&wrap(&line, "  ", 2, WIDTH));
    }
    if let Some(reason) = bound.reason() {
        text.push_str(&wrap(reason, "  ", 2, WIDTH));
    }
    text
}

fn table(bounds: &[Finding]) -> String {
    // One-run bounds have no such limit.
    let limited = bounds.iter().any(|bound| bound.epsilon_upper.is_some());
    let mut columns = vec![
        ("method", Align::Left),
        ("threshold", Align::Left),
        ("delta", Align::Right),
        ("epsilon", Align::Right),
    ];
    columns.extend(limited.then_some(("this test at most", Align::Right)));
    columns.push(("", Align::Left));
    let mut table = TextTable::new(columns);
    for bound in bounds {
        let mut row = vec![
            bound.method().to_string(),
            bound.threshold_rule.clone().unwrap_or_default(),
            plain(bound.delta()),
            epsilon(bound),
        ];
        row.extend(limited.then(|| most(bound)));
        row.push(standing(bound));
        table.row(row);
    }
    let mut text = table.render_within(2, 1, WIDTH);
    // Methods that hold for the same share a line.
    let mut lines: Vec<(&str, Vec<String>)> = Vec::new();
    for bound in bounds {
        let method = bound.method().to_string();
        match lines.iter_mut().find(|(words, _)| *words == bound.valid_for) {
            Some((_, methods)) if methods.contains(&method) => {}
            Some((_, methods)) => methods.push(method),
            None => lines.push((&bound.valid_for, vec![method])),
        }
    }
    text.push_str("  hold for\n");
    for (words, methods) in lines {
        text.push_str(&wrap(words, &format!("    {}: ", methods.join(", ")), 6, WIDTH));
    }
    text
}

/// What the test behind a bound could at most show, where the method has such a limit.
fn most(bound: &Finding) -> String {
    match bound.test_at_most() {
        Some(upper) if upper.number() == f64::INFINITY => "no limit".to_owned(),
        Some(upper) => upper.to_string(),
        None => String::new(),
    }
}

fn epsilon(bound: &Finding) -> String {
    if bound.epsilon() == f64::INFINITY {
        return "infinite".to_owned();
    }
    // The reason of an estimate says where it ended: the whole grid was violated.
    if bound.method().is_estimate() && bound.reason().is_some() {
        return format!("> {}", bound.claim.interval.at_least());
    }
    bound.claim.shown()
}

fn standing(bound: &Finding) -> String {
    if !bound.claim.is_bound() {
        return bound.claim.standing.as_str().to_owned();
    }
    let kind = if bound.method().is_credible() { "credible" } else { "confidence" };
    format!("{} {kind}", confidence(bound.level().unwrap_or(0.0)))
}

fn attack(analysis: &Audit) -> String {
    let mut table = TextTable::new([
        ("", Align::Left),
        ("value", Align::Right),
        ("from", Align::Right),
        ("to", Align::Right),
    ]);
    let mut row = |name: String, measured: &Measured| {
        let [value, from, to] = interval(measured);
        table.row([name, value, from, to]);
    };
    row("AUROC".to_owned(), &analysis.auroc);
    row("advantage (max TPR - FPR)".to_owned(), &analysis.advantage);
    for power in &analysis.tpr {
        row(format!("TPR at FPR {}", plain(power.fpr)), &power.measured);
    }
    if let Some(bootstrap) = &analysis.bootstrap {
        row("AUROC, bootstrap".to_owned(), &bootstrap.auroc);
        for power in &bootstrap.tpr {
            row(format!("TPR at FPR {}, bootstrap", plain(power.fpr)), &power.measured);
        }
    }
    let confidence = confidence(analysis.plan.confidence);
    format!("\nThe attack ({confidence} intervals)\n{}", table.render(2))
}

/// One line per bound.
pub(crate) fn csv(analysis: &Audit) -> String {
    let mut text = csv_line([
        "method",
        "threshold_rule",
        "delta",
        "quantity",
        "epsilon",
        "confidence",
        "valid_for",
        "primary",
        "epsilon_upper",
    ]);
    for bound in &analysis.bounds {
        let confidence = bound.level().map(plain).unwrap_or_default();
        text.push_str(&csv_line([
            bound.method().to_string(),
            bound.threshold_rule.clone().unwrap_or_default(),
            plain(bound.delta()),
            bound.quantity().to_owned(),
            number(bound.epsilon()),
            confidence,
            bound.valid_for.clone(),
            bound.primary.to_string(),
            bound.epsilon_upper.map_or_else(String::new, number),
        ]));
    }
    text
}

fn number(value: f64) -> String {
    if value.is_finite() { plain(value) } else { "inf".to_owned() }
}

/// A measured number and its ends.
pub(crate) fn interval(measured: &Measured) -> [String; 3] {
    [
        Quoted::about(measured.value).to_string(),
        measured.at_least().to_string(),
        measured.at_most().to_string(),
    ]
}
