//! One limit of time for every question that computes.
//!
//! Work that is work (trainings, attacks, reproductions) has none.

use crate::{Kind, Refusal};
use accounting::{AccountingError, patience};
use vocabulary::{NotCertified, Problem};

/// Seconds of processor time that a question may take.
const SECONDS: f64 = 10.0;

/// The limit that a question states, or the usual one.
///
/// # Errors
/// A limit that is not a positive number of seconds.
pub(crate) fn seconds(stated: Option<f64>) -> Result<f64, Refusal> {
    match stated {
        Some(seconds) if !(seconds > 0.0 && seconds.is_finite()) => {
            let message =
                format!("a time limit of {seconds} s is not a positive number of seconds");
            Err(Problem::from(message).about("time limit", seconds, "above 0").into())
        }
        other => Ok(other.unwrap_or(SECONDS)),
    }
}

/// Something beside the answer, within what is left of the limit.
///
/// # Errors
/// Its own; that nothing is left.
pub(crate) fn beside<T>(
    work: impl FnOnce() -> Result<T, AccountingError>,
) -> Result<T, AccountingError> {
    patience::within(f64::INFINITY, work)
        .unwrap_or_else(|| Err(NotCertified::Time { what: "it".into(), seconds: None }.into()))
}

/// Asks within the limit. Numbers of an account share it, and those that are there by then are kept; what goes on beyond
/// it is ended.
///
/// # Errors
/// The question's own; a refusal that says what is known so far.
pub(crate) fn asked<T>(
    stated: Option<f64>,
    ask: impl FnOnce() -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let seconds = seconds(stated)?;
    patience::told();
    let last = 1.05 * seconds + 0.02;
    patience::within(last, || patience::budget(seconds, ask)).unwrap_or_else(|| {
        let known = patience::told().map(|known| format!("; known so far: {known}"));
        Err(Refusal::new(
            Kind::NotCertified,
            format!(
                "the answer takes more than {seconds} s of processor time{}",
                known.unwrap_or_default()
            ),
        )
        .hint("a larger --time-limit lets it go on"))
    })
}

#[cfg(test)]
mod tests {
    use crate::{Kind, Question};

    #[test]
    fn what_takes_too_long_is_refused() {
        // Each takes ten times its limit or more, on any machine.
        let slow = [
            (
                "calibrate",
                r#"{"solve": "noise-multiplier", "target_epsilon": 2, "delta": 1e-5, "time_limit": 0.002,
                    "run": {"sampling": "balls-and-bins", "sample_rate": 0.01, "steps": 1000}}"#,
            ),
            (
                "curve",
                r#"{"kind": "tradeoff", "points": 5000, "time_limit": 0.002,
                    "run": {"noise_multiplier": 0.4, "sample_rate": 1e-4, "steps": 20}}"#,
            ),
            (
                "check",
                r#"{"policy": {"max_tpr": 0.3, "fpr": 0.01}, "time_limit": 0.0002,
                    "run": {"noise_multiplier": 0.3874, "sample_rate": 8.07e-6, "steps": 3}}"#,
            ),
            ("compare-map", r#"{"noise_multiplier": 1, "delta": 1e-5, "time_limit": 0.0002}"#),
        ];
        for (kind, text) in slow {
            let refused = Question::read(kind, text).unwrap().answer().unwrap_err();
            assert_eq!(refused.kind, Kind::NotCertified, "{kind}: {refused:?}");
        }
    }

    #[test]
    fn a_limit_is_a_positive_number_of_seconds() {
        for kind in Question::KINDS {
            let needed = match *kind {
                "curve" => r#""kind": "profile", "#,
                "map" => r#""delta": 1e-5, "#,
                _ => "",
            };
            let text = format!("{{{needed}\"time_limit\": -1}}");
            let refused = Question::read(kind, &text).and_then(|question| question.answer());
            let refused = refused.unwrap_err();
            assert!(refused.message.contains("time limit"), "{kind}: {refused}");
        }
    }

    #[test]
    fn a_limit_changes_no_answer() {
        let ask = |limit: &str| {
            let text = format!(
                r#"{{"run": {{"noise_multiplier": 1, "sample_rate": 0.01, "steps": 1000}}, "delta": 1e-5{limit}}}"#
            );
            Question::read("account", &text).unwrap().answer().unwrap()
        };
        assert_eq!(ask(""), ask(r#", "time_limit": 1000"#));
    }
}
