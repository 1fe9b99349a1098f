//! Claims for a person: one row a lens, one column a question, every number rounded towards
//! the side that may be quoted, with the standing beside it.

use super::{Align, Table, csv_line, plain, wrap};
use vocabulary::{
    Aside, At, Claim, Direction, Quantity, Release, Secret, Side, Source, Standing, Unsupported,
};

/// Width of a screen.
const WIDTH: usize = 96;

/// The claims as a table: rows are lenses (and directions), columns are questions.
pub fn table(claims: &[Claim]) -> String {
    if claims.is_empty() {
        return String::new();
    }
    let mut columns: Vec<(Quantity, At)> = Vec::new();
    let mut rows: Vec<(Source, Direction, bool)> = Vec::new();
    for claim in claims {
        if !columns.contains(&(claim.quantity, claim.at)) {
            columns.push((claim.quantity, claim.at));
        }
        let row = (claim.source, claim.direction, is_attribute(claim));
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    columns.sort_by_key(|(quantity, _)| order(*quantity));
    let titles: Vec<String> =
        columns.iter().map(|(quantity, at)| title(*quantity, *at).replace(" @ ", "\n@ ")).collect();
    let with_directions = rows.iter().any(|(_, direction, _)| *direction != Direction::Both);
    let mut head = vec![("lens", Align::Left)];
    if with_directions {
        head.push(("direction", Align::Left));
    }
    head.push(("standing", Align::Left));
    head.push(("iterates\nseen", Align::Left));
    head.extend(titles.iter().map(|title| (title.as_str(), Align::Right)));
    let mut table = Table::new(head);
    for (lens, direction, attribute) in rows {
        let of_row: Vec<&Claim> = claims
            .iter()
            .filter(|claim| {
                (claim.source, claim.direction, is_attribute(claim)) == (lens, direction, attribute)
            })
            .collect();
        let Some(first) = of_row.first() else { continue };
        let mut cells = vec![name(lens, attribute)];
        if with_directions {
            cells.push(direction.as_str().to_owned());
        }
        cells.push(first.standing.as_str().to_owned());
        cells.push(
            match first.release {
                Release::AllIterates => "all",
                Release::LastIterate => "last",
            }
            .into(),
        );
        for (quantity, at) in &columns {
            let claim = of_row.iter().find(|claim| claim.quantity == *quantity && claim.at == *at);
            cells.push(claim.map_or_else(|| "-".into(), |claim| number(claim)));
        }
        table.row(cells);
    }
    table.render(0)
}

fn is_attribute(claim: &Claim) -> bool {
    claim.secret == Secret::Attribute
}

/// A lens as a row's name: claims about an attribute say so.
fn name(lens: Source, attribute: bool) -> String {
    if attribute { format!("{lens}/attribute") } else { lens.as_str().to_owned() }
}

/// A claim's number as it may be quoted: `<= 1.829`, `>= 0.8389`, `~ 1.72`.
pub fn number(claim: &Claim) -> String {
    claim.shown()
}

/// The question as a column's title, e.g. `epsilon at delta 1e-5`.
pub fn title(quantity: Quantity, at: At) -> String {
    let name = match quantity {
        Quantity::Tpr => "TPR",
        Quantity::BayesSecurity => "Bayes security",
        Quantity::Reconstruction => "reconstruction",
        Quantity::AttackAccuracy => "attack accuracy",
        other => other.as_str(),
    };
    let mut text = name.to_owned();
    for (key, value) in
        [("delta", at.delta), ("epsilon", at.epsilon), ("FPR", at.fpr), ("prior", at.prior)]
    {
        if let Some(value) = value {
            text.push_str(&format!(" @ {key} {}", plain(value)));
        }
    }
    text
}

/// Numbers that are not claims about the run, with their notes.
pub fn asides(asides: &[Aside]) -> String {
    if asides.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nNot about this run's sampling, for comparison:\n");
    for aside in asides {
        let what = format!("{} {}: {}", title(aside.quantity, aside.at), aside.shown(), aside.note);
        text.push_str(&wrap(&what, "  - ", 4, WIDTH));
    }
    text
}

/// Assumptions by lens, and the lenses that do not hold.
pub fn footer(claims: &[Claim], unsupported: &[Unsupported]) -> String {
    let mut text = String::new();
    let mut lenses: Vec<&Claim> = Vec::new();
    for claim in claims {
        let same = |seen: &&Claim| {
            seen.source == claim.source && is_attribute(seen) == is_attribute(claim)
        };
        if !lenses.iter().any(same) {
            lenses.push(claim);
        }
    }
    if !lenses.is_empty() {
        text.push_str("\nAssumptions:\n");
        // Each once, with the lenses that make it where not all do.
        let mut lines: Vec<(&str, Vec<String>)> = Vec::new();
        for claim in &lenses {
            let whose = name(claim.source, is_attribute(claim));
            for line in &claim.assumptions {
                match lines.iter_mut().find(|(known, _)| known == line) {
                    Some((_, makers)) => makers.push(whose.clone()),
                    None => lines.push((line, vec![whose.clone()])),
                }
            }
        }
        lines.sort_by_key(|(_, makers)| makers.len() < lenses.len());
        for (line, makers) in lines {
            let whose = if makers.len() == lenses.len() {
                String::new()
            } else {
                format!(" [{}]", makers.join(", "))
            };
            text.push_str(&wrap(&format!("{line}{whose}"), "  - ", 4, WIDTH));
        }
        for standing in [Standing::Heuristic, Standing::Estimate] {
            if lenses.iter().any(|claim| claim.standing == standing) {
                text.push_str(&format!("  {}\n", meaning(standing)));
            }
        }
    }
    if !unsupported.is_empty() {
        text.push_str("\nDo not hold for this run:\n");
        // Lenses that share a reason share a line.
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for entry in unsupported {
            match reasons.iter_mut().find(|(reason, _)| *reason == entry.reason) {
                Some((_, lenses)) => lenses.push(entry.lens.as_str()),
                None => reasons.push((&entry.reason, vec![entry.lens.as_str()])),
            }
        }
        for (reason, lenses) in reasons {
            text.push_str(&wrap(&format!("{}: {reason}", lenses.join(", ")), "  - ", 4, WIDTH));
        }
    }
    text
}

fn meaning(standing: Standing) -> &'static str {
    match standing {
        Standing::Proven => "proven: a theorem covers it",
        Standing::Heuristic => {
            "heuristic: true only under an assumption that training does not satisfy"
        }
        Standing::Estimate => "estimate: may err on either side",
        Standing::Measured => "measured: observed, with a confidence",
    }
}

fn order(quantity: Quantity) -> u8 {
    match quantity {
        Quantity::Epsilon => 0,
        Quantity::Delta => 1,
        Quantity::Mu => 2,
        Quantity::Advantage => 3,
        Quantity::BayesSecurity => 4,
        Quantity::Tpr => 5,
        Quantity::Reconstruction => 6,
        Quantity::AttackAccuracy => 7,
    }
}

/// The claims as CSV, numbers not rounded.
pub fn csv(claims: &[Claim]) -> String {
    let mut text = csv_line([
        "lens",
        "release",
        "secret",
        "direction",
        "quantity",
        "delta",
        "epsilon",
        "fpr",
        "prior",
        "standing",
        "side",
        "value",
        "lower",
        "upper",
    ]);
    let given = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for claim in claims {
        let interval = claim.interval;
        text.push_str(&csv_line([
            claim.source.as_str().to_owned(),
            claim.release.as_str().to_owned(),
            match claim.secret {
                Secret::Membership => "membership",
                Secret::Attribute => "attribute",
                Secret::Reconstruction => "reconstruction",
            }
            .to_owned(),
            claim.direction.as_str().to_owned(),
            claim.quantity.as_str().to_owned(),
            given(claim.at.delta),
            given(claim.at.epsilon),
            given(claim.at.fpr),
            given(claim.at.prior),
            claim.standing.as_str().to_owned(),
            match claim.side {
                Side::Upper => "upper",
                Side::Lower => "lower",
                Side::Neither => "neither",
            }
            .to_owned(),
            interval.value.to_string(),
            interval.lower.to_string(),
            interval.upper.to_string(),
        ]));
    }
    text
}
