//! Claims for a person: one row per lens, one column per question, every number rounded towards
//! the side that may be quoted, with the standing beside it.

use super::{Align, TextTable, WIDTH, csv_line, describe, wrap};
pub use vocabulary::words::title;
use vocabulary::{Account, Aside, At, Claim, Direction, Quantity, Secret, Source, Unsupported};

/// The line to sign and the run, with an empty line where a table follows.
pub(crate) fn head(account: &Account) -> String {
    let after = if account.claims.is_empty() { "" } else { "\n" };
    format!("{}\n{}{after}", sign(account), describe::run(&account.run))
}

/// An account on one screen: what may be signed, the lens behind it and the heuristic beside it,
/// and a short list of the others.
pub(crate) fn overview(account: &Account) -> String {
    let mut text = head(account);
    let Some(sign) = &account.sign else {
        text.push_str(&table(&account.claims));
        text.push_str(&asides(&account.asides));
        text.push_str(&footer(&account.claims, &account.unsupported));
        return text;
    };
    let shown: Vec<Source> =
        std::iter::once(sign.lens).chain(sign.beside).map(Source::Lens).collect();
    let (main, others): (Vec<&Claim>, Vec<&Claim>) =
        account.claims.iter().partition(|claim| shown.contains(&claim.source));
    text.push_str(&side_by_side(&main, &shown));
    text.push_str(&short_list(&others));
    text.push_str(&asides(&account.asides));
    let main: Vec<Claim> = main.into_iter().cloned().collect();
    text.push_str(&footer(&main, &[]));
    if !account.unsupported.is_empty() {
        let names: Vec<&str> = account.unsupported.iter().map(|one| one.lens.as_str()).collect();
        let line = format!("{} (--lens all says why)", names.join(", "));
        text.push_str(&wrap(&line, "\nDo not apply to this run: ", 2, WIDTH));
    }
    text
}

/// The line to sign and what it means.
pub fn sign(account: &Account) -> String {
    match &account.sign {
        None => wrap(vocabulary::NOTHING_TO_SIGN, "Sign: ", 6, WIDTH),
        Some(sign) => {
            let mut text = wrap(&format!("{}.", sign.statement), "Sign: ", 6, WIDTH);
            for line in sign.means.iter().chain(&sign.attribute) {
                text.push_str(&wrap(line, "", 0, WIDTH));
            }
            text
        }
    }
}

/// One row per question, one column per lens.
fn side_by_side(claims: &[&Claim], lenses: &[Source]) -> String {
    let heads: Vec<String> = lenses
        .iter()
        .filter_map(|lens| claims.iter().find(|claim| claim.source == *lens))
        .map(|claim| {
            format!("{}\n{}\n{}", claim.source, claim.standing.as_str(), claim.release.words())
        })
        .collect();
    let columns = heads.iter().map(|head| (head.as_str(), Align::Right));
    let mut table = TextTable::new(std::iter::once(("", Align::Left)).chain(columns));
    for (quantity, at) in questions(claims) {
        let cell = |lens: &Source| {
            let found = claims.iter().find(|claim| {
                claim.source == *lens && claim.quantity == quantity && claim.at == at
            });
            found.map_or_else(|| "-".into(), |claim| number(claim))
        };
        table.row(std::iter::once(title(quantity, at)).chain(lenses.iter().map(cell)));
    }
    table.render_within(0, 1, WIDTH)
}

/// The first answer of each of the other lenses.
fn short_list(claims: &[&Claim]) -> String {
    let mut table = TextTable::new([
        ("", Align::Left),
        ("", Align::Left),
        ("", Align::Left),
        ("", Align::Right),
    ]);
    let mut seen: Vec<Source> = Vec::new();
    for claim in claims {
        if !seen.contains(&claim.source) {
            seen.push(claim.source);
            table.row([
                claim.source.as_str().to_owned(),
                claim.standing.as_str().to_owned(),
                title(claim.quantity, claim.at),
                number(claim),
            ]);
        }
    }
    if seen.is_empty() {
        return String::new();
    }
    let text = table.render(2);
    format!("\nOther lenses (--lens all for all their numbers)\n{}", text.trim_start_matches('\n'))
}

/// What the claims answer, in the order in which it is shown.
fn questions(claims: &[&Claim]) -> Vec<(Quantity, At)> {
    let mut all: Vec<(Quantity, At)> = Vec::new();
    for claim in claims {
        if !all.contains(&(claim.quantity, claim.at)) {
            all.push((claim.quantity, claim.at));
        }
    }
    all.sort_by_key(|(quantity, _)| order(*quantity));
    all
}

/// The claims as a table: rows are lenses (and directions), columns are questions.
pub fn table(claims: &[Claim]) -> String {
    if claims.is_empty() {
        return String::new();
    }
    let columns = questions(&claims.iter().collect::<Vec<_>>());
    let mut rows: Vec<(Source, Direction, bool)> = Vec::new();
    for claim in claims {
        let row = (claim.source, claim.direction, is_attribute(claim));
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let titles: Vec<String> =
        columns.iter().map(|(quantity, at)| title(*quantity, *at).replace(" @ ", "\n@ ")).collect();
    let with_directions = rows.iter().any(|(_, direction, _)| *direction != Direction::Both);
    let mut head = vec![("lens", Align::Left)];
    if with_directions {
        head.push(("direction", Align::Left));
    }
    head.push(("standing", Align::Left));
    head.push(("seen", Align::Left));
    head.extend(titles.iter().map(|title| (title.as_str(), Align::Right)));
    let mut table = TextTable::new(head);
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
        cells.push(first.release.words().into());
        for (quantity, at) in &columns {
            let claim = of_row.iter().find(|claim| claim.quantity == *quantity && claim.at == *at);
            cells.push(claim.map_or_else(|| "-".into(), |claim| number(claim)));
        }
        table.row(cells);
    }
    table.render_within(0, 1, WIDTH)
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
    let end = claim.quoted();
    if end.number() == f64::INFINITY { "no bound".into() } else { end.shown() }
}

/// Numbers that are not claims about the run, with their notes.
pub fn asides(asides: &[Aside]) -> String {
    if asides.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nFor comparison; do not quote these for this run:\n");
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
        for meaning in answers::legends::standings(&lenses) {
            text.push_str(&wrap(meaning, "  ", 2, WIDTH));
        }
    }
    if !unsupported.is_empty() {
        text.push_str("\nDo not apply to this run:\n");
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
            claim.secret.as_str().to_owned(),
            claim.direction.as_str().to_owned(),
            claim.quantity.as_str().to_owned(),
            given(claim.at.delta),
            given(claim.at.epsilon),
            given(claim.at.fpr),
            given(claim.at.prior),
            claim.standing.as_str().to_owned(),
            claim.side.as_str().to_owned(),
            interval.value.to_string(),
            interval.lower.to_string(),
            interval.upper.to_string(),
        ]));
    }
    text
}
