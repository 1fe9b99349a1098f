//! The line that a person may sign, and what it means to a reader.

use crate::Standing;
use crate::words::at_words;
use crate::{Adjacency, AtLeast, Claim, Direction, LensName, Quantity, Run, Secret, Side, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What may be signed about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sign {
    /// The proven lens that it is from.
    pub lens: LensName,
    /// The statement, e.g. `epsilon <= 1.829 at delta 1e-5, for adding or removing one record`.
    pub statement: String,
    /// The same as what an attacker can do, where a true positive rate is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<String>,
    /// What is known of a secret attribute, where the question was about one. Nobody may sign it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute: Option<String>,
    /// The heuristic lens to show beside it, which nobody may sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<LensName>,
}

/// What is said in the place of a line to sign.
pub const NOTHING_TO_SIGN: &str = "nothing. No lens proves a number for this run.";

impl Sign {
    /// The first proven claim about one record's membership: epsilon, or else the advantage.
    pub fn of(run: &Run, claims: &[Claim]) -> Option<Self> {
        let fit = |claim: &&Claim| {
            claim.standing == Standing::Proven
                && claim.side == Side::Upper
                && claim.secret == Secret::Membership
                && claim.direction == Direction::Both
                && claim.interval.upper.is_finite()
        };
        let of = |quantity| claims.iter().filter(fit).find(|claim| claim.quantity == quantity);
        let claim = of(Quantity::Epsilon).or_else(|| of(Quantity::Advantage))?;
        let Source::Lens(lens) = claim.source else { return None };
        let records = records(run, 1);
        let unit = run.unit().map(|unit| format!(" (a record is {unit})")).unwrap_or_default();
        let least = claim
            .at_least_shown()
            .map_or_else(String::new, |least| format!("; the worst case is {least}"));
        let statement = format!(
            "{} {}{}, for {} {records}{unit}{least}",
            claim.quantity.as_str(),
            claim.shown(),
            at_words(claim.at),
            run.adjacency().words(),
        );
        let rates: Vec<&Claim> = claims
            .iter()
            .filter(fit)
            .filter(|other| other.quantity == Quantity::Tpr && other.source == claim.source)
            .collect();
        let smallest =
            rates.iter().min_by(|a, b| a.at.fpr.unwrap_or(1.0).total_cmp(&b.at.fpr.unwrap_or(1.0)));
        let means =
            smallest.map(|rate| attacker(run, rate.at.fpr.unwrap_or(1.0), rate.interval.upper));
        let beside = claims.iter().find_map(|other| match other.source {
            Source::Lens(lens) if other.standing == Standing::Heuristic => Some(lens),
            _ => None,
        });
        Some(Self { lens, statement, means, attribute: attribute(claims), beside })
    }
}

/// What an attacker learns of a secret attribute, from the bounds on it.
fn attribute(claims: &[Claim]) -> Option<String> {
    let bound = |quantity, side| {
        claims.iter().find(move |claim| {
            claim.secret == Secret::Attribute && claim.quantity == quantity && claim.side == side
        })
    };
    let claim = bound(Quantity::BayesSecurity, Side::Lower)?;
    let mut text =
        format!("The attribute ({}): Bayes security {}.", claim.standing.as_str(), claim.shown());
    let even = bound(Quantity::AttackAccuracy, Side::Upper).filter(|one| one.at.prior == Some(0.5));
    if let Some(right) = even {
        let percent = right.interval.at_most().percent();
        text.push_str(&format!(
            " At even odds an attacker guesses it right in at most {percent} % of cases."
        ));
    }
    Some(text)
}

/// "one record", "3 records".
fn records(run: &Run, many: u64) -> String {
    match (run.group_size(), many) {
        (1, 1) => "one record".into(),
        (1, _) => "records".into(),
        (size, 1) => format!("{size} records"),
        (size, _) => format!("groups of {size} records"),
    }
}

/// What an attacker with this false positive rate finds at most.
fn attacker(run: &Run, fpr: f64, tpr: f64) -> String {
    let mut of = 1000.0;
    while fpr * of < 0.9995 && of < 1e15 {
        of *= 10.0;
    }
    // Fewer wrong accusations and more right ones are the safe sides.
    let wrong = fpr * of;
    let wrong = if (wrong - wrong.round()).abs() < 1e-9 * of {
        counted(wrong.round())
    } else {
        AtLeast::new(wrong).digits(3)
    };
    let right = (tpr * of).ceil();
    let most = if right >= of {
        format!("may find all {}", counted(of))
    } else {
        format!("finds at most {} of {}", counted(right), counted(of))
    };
    let of = counted(of);
    let records = records(run, 2);
    match run.adjacency() {
        Adjacency::AddRemove => format!(
            "An attack that wrongly accuses {wrong} of {of} {records} outside the data {most} in it."
        ),
        Adjacency::ZeroOut => format!(
            "An attack that wrongly accuses {wrong} of {of} {records} that were not trained on \
             {most} that were."
        ),
        Adjacency::Substitute => format!(
            "Where the record is one of two candidates, an attack that wrongly names the first in \
             {wrong} of {of} trainings on the second {most} trainings on the first."
        ),
    }
}

/// A whole number with its thousands marked.
fn counted(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{At, Interval, Release};

    fn claim(lens: LensName, quantity: Quantity, at: At, standing: Standing, upper: f64) -> Claim {
        Claim {
            source: lens.into(),
            release: Release::AllIterates,
            secret: Secret::Membership,
            direction: Direction::Both,
            adjacency: Adjacency::AddRemove,
            quantity,
            at,
            standing,
            side: Side::Upper,
            interval: Interval::new(0.0, upper, upper),
            at_least: None,
            confidence: None,
            certificate: None,
            reason: None,
            assumptions: Vec::new(),
        }
    }

    fn at(delta: Option<f64>, fpr: Option<f64>) -> At {
        At { delta, fpr, ..At::default() }
    }

    #[test]
    fn an_attack_that_may_find_all_is_not_limited() {
        let run = Run::builder().phase(1.0, 0.01, 1000).build().unwrap();
        for tpr in [0.9996, 1.0] {
            let words = attacker(&run, 0.001, tpr);
            assert!(words.contains("outside the data may find all 1,000 in it"), "{words}");
        }
        assert!(attacker(&run, 0.001, 0.999).contains("finds at most 999 of 1,000 in it"));
    }

    #[test]
    fn the_first_proven_number_is_signed() {
        let run = Run::builder().phase(1.0, 0.01, 1000).build().unwrap();
        let claims = [
            claim(
                LensName::LastIterate,
                Quantity::Epsilon,
                at(Some(1e-5), None),
                Standing::Heuristic,
                0.5,
            ),
            claim(
                LensName::Composition,
                Quantity::Epsilon,
                at(Some(1e-5), None),
                Standing::Proven,
                1.8282,
            ),
            claim(
                LensName::Composition,
                Quantity::Tpr,
                at(None, Some(0.01)),
                Standing::Proven,
                0.0612,
            ),
            claim(
                LensName::Composition,
                Quantity::Tpr,
                at(None, Some(0.001)),
                Standing::Proven,
                0.0131,
            ),
        ];
        let sign = Sign::of(&run, &claims).unwrap();
        assert_eq!(
            sign.statement,
            "epsilon <= 1.829 at delta 1e-5, for adding or removing one record"
        );
        assert_eq!(
            sign.means.as_deref(),
            Some(
                "An attack that wrongly accuses 1 of 1,000 records outside the data finds at most \
                 14 of 1,000 in it."
            )
        );
        assert_eq!(sign.beside, Some(LensName::LastIterate));
        assert_eq!(Sign::of(&run, &claims[..1]), None);
    }

    #[test]
    fn the_unit_and_the_relation_are_said() {
        let run = crate::RunFile::from_toml_str(
            "[run]\nnoise_multiplier = 1\nsample_rate = 0.01\nsteps = 10\nadjacency = \"substitute\"\n\
             unit = \"one user's 1024-token sequence\"\n",
        )
        .unwrap();
        let run = run.run.resolve().unwrap().run;
        let claims = [
            claim(LensName::Composition, Quantity::Advantage, At::default(), Standing::Proven, 0.1),
            claim(
                LensName::Composition,
                Quantity::Tpr,
                at(None, Some(2e-5)),
                Standing::Proven,
                1.0,
            ),
        ];
        let sign = Sign::of(&run, &claims).unwrap();
        assert_eq!(
            sign.statement,
            "advantage <= 0.1000, for replacing one record (a record is one user's 1024-token \
             sequence)"
        );
        let means = sign.means.unwrap();
        assert!(
            means.contains("in 2 of 100,000 trainings on the second may find all 100,000"),
            "{means}"
        );
    }

    #[test]
    fn an_attribute_has_a_line_of_its_own() {
        let run = Run::builder().phase(1.0, 0.01, 1000).build().unwrap();
        let epsilon = at(Some(1e-5), None);
        let proven =
            claim(LensName::Composition, Quantity::Epsilon, epsilon, Standing::Proven, 1.8);
        let mut estimate = claim(
            LensName::ClosedForm,
            Quantity::BayesSecurity,
            At::default(),
            Standing::Estimate,
            0.99,
        );
        estimate.secret = Secret::Attribute;
        estimate.side = Side::Neither;
        let mut bound = estimate.clone();
        bound.standing = Standing::Heuristic;
        bound.side = Side::Lower;
        bound.interval = Interval::new(0.909857, 0.909857, 1.0);
        let mut right = bound.clone();
        right.quantity = Quantity::AttackAccuracy;
        right.at.prior = Some(0.5);
        right.side = Side::Upper;
        right.interval = Interval::new(0.5, 0.54507141, 0.54507142);
        let sign = Sign::of(&run, &[proven.clone(), estimate.clone(), bound, right]).unwrap();
        assert_eq!(
            sign.attribute.unwrap(),
            "The attribute (heuristic): Bayes security >= 0.9098. At even odds an attacker \
             guesses it right in at most 54.51 % of cases."
        );
        // An estimate is no bound.
        assert_eq!(Sign::of(&run, &[proven, estimate]).unwrap().attribute, None);
    }

    #[test]
    fn rates_are_told_on_the_safe_side() {
        let run = Run::builder().phase(1.0, 0.01, 10).group_size(3).build().unwrap();
        let text = attacker(&run, 0.0333333, 0.05);
        assert!(text.contains("33.3 of 1,000 groups of 3 records"), "{text}");
        assert!(text.contains("at most 50 of 1,000"), "{text}");
        assert!(attacker(&run, 1e-7, 1.1e-6).contains("1 of 10,000,000"));
    }
}
