//! How much audits show, beside the valid peers: the same data sets for all, from the example
//! `audit_tightness` of the crate `probes`.

use super::audit::Peers;
use super::bars::Bar;
use super::measure::{Bench, Measured};
use super::page::Page;
use crate::process::root;
use serde_json::Value;

pub(super) fn tightness(bench: &Bench, page: &mut Page, peers: &Peers) {
    page.heading(
        "How much audits show",
        "Mean lower bounds on epsilon at 95 % confidence, delta 0 where no other is named, over the same data sets for \
         all; in brackets the standard error of the difference to Dosimeter. Dosimeter: the default rule at the default seed, or \
         `fixed:V` where the threshold is fixed beforehand. Two bands: the rule before the joint martingale. \
         jax-privacy: both directions for trainings, the hull's vertices as the number of tests. privacy-estimates: Clopper-Pearson (`beta`). Privacy Meter: \
         Theorem 5.2 of Steinke, Nasr and Jagielski (2023) with a quarter of the canaries guessed on each side.",
    );
    page.line(format!("Peers of this section: {}.\n", peers.versions()));
    let folder = root().join("target/bench/tightness");
    if let Err(error) = std::fs::create_dir_all(&folder) {
        page.line(format!("Not measured: {error}"));
        return;
    }
    let drawn = bench.example("audit_tightness", &[folder.display().to_string()]);
    if let Measured::Nothing(why) = drawn {
        page.line(format!("Not measured: {why}"));
        return;
    }
    let text = std::fs::read_to_string(folder.join("bounds.json")).unwrap_or_default();
    let settings: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
    page.line(
        "| setting | trials | Dosimeter | two bands | best valid peer | others | above the best |",
    );
    page.line("|---|---|---|---|---|---|---|");
    let mut gains = Vec::new();
    // How far below a peer's mean, and below that of two bands, at worst.
    let (mut behind, mut behind_bands) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    // The largest part of what could be shown that a perfect attack does not show.
    let mut short = f64::NEG_INFINITY;
    let mut complete = !settings.is_empty();
    for setting in &settings {
        let name = setting["name"].as_str().unwrap_or_default();
        let Some(ours) = numbers(&setting["ours"]) else { continue };
        let file = |part: &str| folder.join(format!("{name}.{part}.npy")).display().to_string();
        let number = |key: &str| setting[key].as_f64().unwrap_or(0.0).to_string();
        let kind = setting["kind"].as_str().unwrap_or_default();
        let (delta, threshold) = (number("delta"), number("threshold"));
        let found =
            peers.take("tightness", &[kind, &delta, &threshold, &file("scores"), &file("members")]);
        let mean_of_ours = mean(&ours);
        let mut theirs: Vec<(String, f64, f64)> = Vec::new();
        if let Measured::Answer(object) = &found
            && let Some(bounds) = object["bounds"].as_object()
        {
            for (peer, values) in bounds {
                let Some(values) = numbers(values) else { continue };
                let differences: Vec<f64> =
                    ours.iter().zip(&values).map(|(ours, theirs)| ours - theirs).collect();
                theirs.push((peer.clone(), mean(&values), standard_error(&differences)));
            }
        }
        theirs.sort_by(|a, b| b.1.total_cmp(&a.1));
        let cell =
            |(peer, mean, error): &(String, f64, f64)| format!("{mean:.3} ({error:.3}) {peer}");
        let gain = theirs.first().map(|best| mean_of_ours / best.1 - 1.0);
        match theirs.first() {
            Some(best) => behind = behind.max(best.1 - mean_of_ours),
            None => complete = false,
        }
        gains.extend(gain);
        let bands = numbers(&setting["two_bands"]).map(|bands| mean(&bands));
        if let Some(bands) = bands {
            behind_bands = behind_bands.max(bands - mean_of_ours);
        }
        let others: Vec<String> = theirs.iter().skip(1).map(cell).collect();
        page.line(format!(
            "| {} | {} | **{mean_of_ours:.3}** | {} | {} | {} | {} |",
            setting["text"].as_str().unwrap_or(name),
            ours.len(),
            bands.map_or_else(|| "—".to_owned(), |bands| format!("{bands:.3}")),
            theirs.first().map_or_else(|| "—".to_owned(), cell),
            if others.is_empty() { "—".to_owned() } else { others.join("; ") },
            gain.map_or_else(|| "—".to_owned(), |gain| format!("{:+.1} %", 100.0 * gain)),
        ));
        if let Some(most) = setting["most"].as_f64() {
            short = short.max(1.0 - mean_of_ours / most);
        }
        let shown = Some(mean_of_ours);
        if name == "one-gaussian-4-10000" {
            let promise =
                "one run, mu 4, 10,000 canaries, delta 1e-5: epsilon at least 6.5 by default";
            page.bar(Bar::at_least(promise, 6.5, shown).plain());
        }
    }
    let complete = |value: f64| Some(value).filter(|_| complete && value.is_finite());
    page.bar(
        Bar::at_most("audits: at most 0.02 below any valid peer", 0.02, complete(behind)).plain(),
    );
    page.bar(
        Bar::at_least(
            "audits: on average at least 1.1 times the best valid peer",
            1.1,
            complete(1.0 + mean(&gains)),
        )
        .plain(),
    );
    page.bar(
        Bar::at_most("`union`: at most 0.03 below two bands", 0.03, complete(behind_bands)).plain(),
    );
    let promise = "a perfect attack on canaries: at most 0.05 of what one strategy could show, chosen with hindsight, is not shown";
    page.bar(Bar::at_most(promise, 0.05, Some(short).filter(|value| value.is_finite())).plain());
    let _ = std::fs::remove_dir_all(folder);
}

fn numbers(value: &Value) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(Value::as_f64).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn standard_error(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    let n = values.len() as f64;
    (squares / (n - 1.0).max(1.0) / n).sqrt()
}
