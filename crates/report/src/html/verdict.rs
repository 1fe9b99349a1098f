//! The box at the top: claim, evidence, standing, and the assumptions with their marks.

use super::escape::{escape, prose};
use super::parts::{NOT_PRIVATE, number, power_of_ten};
use crate::Report;
use crate::words::{confidence, method, sign, with_commas};
use vocabulary::rounding::DIGITS;
use vocabulary::{AtMost, Claim, Finding, Quoted, Standing, Verdict};

pub(super) fn verdict(report: &Report) -> String {
    let verdict = &report.verdict;
    let status = verdict.status;
    let mut text = format!(
        "<section id=\"verdict\" class=\"verdict\" aria-labelledby=\"verdict-heading\">\n\
         <div class=\"box {}\">\n<div class=\"top\">\n<p class=\"badge\">{}</p>\n\
         <h2 id=\"verdict-heading\">{}</h2>\n<p>{}</p>\n</div>\n",
        status.as_str(),
        status.badge(),
        escape(&verdict.headline),
        prose(&verdict.reason)
    );
    text.push_str(&readings(report));
    text.push_str(&gauge(verdict));
    text.push_str("</div>\n");
    text.push_str(&assumptions(report));
    text.push_str("</section>\n");
    text
}

/// The three numbers side by side.
fn readings(report: &Report) -> String {
    let verdict = &report.verdict;
    let delta = power_of_ten(report.delta);
    let mut all = String::new();
    if let Some(claim) = &verdict.claim {
        let proven = claim.standing == Standing::Proven;
        all.push_str(&reading(
            if proven { "is-proven" } else { "is-heuristic" },
            if proven { "Claim \u{b7} proven" } else { "Claim \u{b7} heuristic" },
            &bound("\u{3b5}", claim),
            &format!("at \u{3b4} = {delta}, whatever iterates are released{}", worst(claim)),
        ));
    }
    if let Some(claim) = &verdict.heuristic {
        all.push_str(&reading(
            "is-heuristic",
            "Last iterate \u{b7} heuristic",
            &bound("\u{3b5}", claim),
            &format!("at \u{3b4} = {delta}, if only the final model is released"),
        ));
    }
    if let (Some(found), Some(audit)) = (&verdict.measured, &report.audit) {
        all.push_str(&reading(
            "is-measured",
            &format!("Evidence \u{b7} measured{NOT_PRIVATE}"),
            &measured(found),
            &format!(
                "at \u{3b4} = {}, {} confidence; {} + {} scores, {}",
                power_of_ten(found.delta()),
                confidence(found),
                with_commas(audit.members),
                with_commas(audit.nonmembers),
                escape(&method(found))
            ),
        ));
    }
    if all.is_empty() { all } else { format!("<dl class=\"readings\">\n{all}</dl>\n") }
}

/// What the worst data sets leak at least, where the bound is not exact.
fn worst(claim: &Claim) -> String {
    claim.worst_case().map_or_else(String::new, |least| {
        format!("; the worst case is \u{2265} {}", number(least, DIGITS))
    })
}

fn reading(class: &str, name: &str, big: &str, small: &str) -> String {
    format!(
        "<div class=\"reading {class}\"><dt>{name}</dt><dd class=\"big\">{big}</dd>\
         <dd class=\"small\">{small}</dd></div>\n"
    )
}

fn bound(name: &str, claim: &Claim) -> String {
    let end = claim.quoted();
    format!("{name} {} {}", sign(end.side()), number(end, DIGITS))
}

fn measured(found: &Finding) -> String {
    if found.epsilon().is_finite() {
        bound("\u{3b5}", &found.claim)
    } else {
        "\u{3b5} unbounded".into()
    }
}

/// One line from 0: what was shown, what is unknown, where the claim ends.
fn gauge(verdict: &Verdict) -> String {
    let finite = |claim: &Option<Claim>| {
        let end = claim.as_ref().map(|claim| claim.interval.at_most());
        end.filter(|end| end.number().is_finite())
    };
    let Some(claimed) = finite(&verdict.claim) else { return String::new() };
    let proven = claimed.number();
    let measured = verdict.measured.as_ref().map(|found| found.claim.quoted());
    let measured = measured.filter(|end| end.number().is_finite());
    let shown = measured.map(Quoted::number);
    let expected = finite(&verdict.heuristic).filter(|end| end.number() < 0.97 * proven);
    let heuristic = expected.map(AtMost::number);
    let end = proven.max(shown.unwrap_or(0.0)) * 1.02;
    let place = |value: f64| format!("{:.2}%", 100.0 * value / end);
    let mut track = String::new();
    let mut words = vec![format!("at most {claimed} is claimed")];
    if let (Some(shown), Some(measured)) = (shown, measured) {
        track.push_str(&format!("<span class=\"shown\" style=\"width:{}\"></span>", place(shown)));
        words.push(format!("at least {measured} was shown"));
    }
    let beyond = shown.filter(|shown| *shown > proven);
    if let Some(shown) = beyond {
        track.push_str(&format!(
            "<span class=\"beyond\" style=\"left:{};width:{}\"></span>",
            place(proven),
            place(shown - proven)
        ));
    }
    if let (Some(heuristic), Some(expected)) = (heuristic, expected) {
        track.push_str(&format!(
            "<span class=\"tick is-heuristic\" style=\"left:{}\"></span>",
            place(heuristic)
        ));
        words.push(format!("the heuristic says {expected}"));
    }
    track.push_str(&format!(
        "<span class=\"tick is-proven\" style=\"left:{}\"></span>",
        place(proven)
    ));
    let mut reading = String::from("Epsilon from 0.");
    if shown.is_some() {
        reading.push_str(" Filled: what the attack has shown.");
    }
    reading.push_str(if beyond.is_some() {
        " Red: shown beyond the claim, which ends at the blue line."
    } else {
        " Hatched: up to the claim, neither shown nor excluded."
    });
    if heuristic.is_some() {
        reading.push_str(" Orange: the last-iterate heuristic.");
    }
    format!(
        "<div class=\"gauge\">\n<div class=\"track\" role=\"img\" aria-label=\"Epsilon: {}\">{track}\
         </div>\n<p class=\"scale\">{reading}</p>\n</div>\n",
        escape(&words.join(", "))
    )
}

fn assumptions(report: &Report) -> String {
    if report.assumptions.is_empty() {
        return String::new();
    }
    let title = match report.verdict.claim {
        Some(_) => "The claim is as good as these assumptions",
        None => "What is known about the training",
    };
    let mut text = format!("<div class=\"assumptions\">\n<h3>{title}</h3>\n<ul>\n");
    for assumption in &report.assumptions {
        text.push_str(&format!(
            "<li><span class=\"mark {}\">{}</span><span>{}</span><span class=\"note\">{}</span></li>\n",
            assumption.mark.as_str(),
            assumption.mark.words(),
            escape(&assumption.text),
            escape(&assumption.note)
        ));
    }
    text.push_str("</ul>\n</div>\n");
    text
}
