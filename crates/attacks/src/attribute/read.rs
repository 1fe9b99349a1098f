//! Sensitivities from text: CSV with a header. Columns `sensitivity` (R_t, in the units of the
//! clip norm), or `norm_a,norm_b,inner` of candidate pairs, or both; `step` (from 1; rows are one
//! step each without it) and `record` (for the mode `record`). Several rows of a step are several
//! candidate pairs, and the worst counts.

use accounting::AccountingError;
use accounting::bayes_security::attribute::{GradientPair, Mode, Row, Sensitivities};
use formats::csv::CsvTable;
use std::collections::BTreeMap;

const KNOWN: [&str; 6] = ["step", "record", "sensitivity", "norm_a", "norm_b", "inner"];

/// Reads sensitivities from CSV, as [`write_csv`](super::write_csv) writes them.
///
/// ```
/// use accounting::bayes_security::attribute::Mode;
/// use attacks::attribute::read_csv;
/// let text = "step,sensitivity\n1,0.2\n2,0.1\n";
/// assert_eq!(read_csv(text, Mode::Dataset)?.steps(), 2);
/// let error = read_csv("sensitivity\n0.2\n-1\n", Mode::Batch).unwrap_err();
/// assert!(error.to_string().contains("row 3") && error.to_string().contains("-1"));
/// # Ok::<(), accounting::AccountingError>(())
/// ```
///
/// # Errors
/// `InvalidInput`, naming the row and the value.
pub fn read_csv(text: &str, mode: Mode) -> Result<Sensitivities, AccountingError> {
    let invalid = |message: String| AccountingError::invalid(message);
    let table =
        CsvTable::read(text).map_err(|problem| invalid(format!("the sensitivities, {problem}")))?;
    let header = table.header();
    if let Some(name) = header.iter().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(invalid(format!(
            "the sensitivities have a column `{}`; the columns are {}",
            name.chars().filter(|c| !c.is_control()).take(40).collect::<String>(),
            KNOWN.join(", ")
        )));
    }
    let column = |name: &str| table.column(name);
    let (step, record, sensitivity) = (column("step"), column("record"), column("sensitivity"));
    let pair = match (column("norm_a"), column("norm_b"), column("inner")) {
        (Some(a), Some(b), Some(c)) => Some((a, b, c)),
        (None, None, None) => None,
        _ => {
            return Err(invalid("norm_a, norm_b and inner go together; one is missing".into()));
        }
    };
    if sensitivity.is_none() && pair.is_none() {
        return Err(invalid(
            "the sensitivities need a column `sensitivity`, or norm_a, norm_b and inner".into(),
        ));
    }
    if mode == Mode::Record && record.is_none() {
        return Err(invalid("the mode `record` needs a column `record`".into()));
    }
    let mut records: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    // A row is a line of the file, the header the first.
    for (number, cells) in table.rows() {
        let cell = |column: usize| {
            cells
                .get(column)
                .and_then(|cell| cell.parse::<f64>().ok())
                .filter(|value| value.is_finite())
                .ok_or_else(|| {
                    invalid(format!(
                        "row {number} of the sensitivities has no number in `{}`",
                        header[column]
                    ))
                })
        };
        let length = |column: usize| {
            let value = cell(column)?;
            if value >= 0.0 {
                return Ok(value);
            }
            Err(invalid(format!(
                "row {number} of the sensitivities: {} is {value}, below 0",
                header[column]
            )))
        };
        let pair = match pair {
            Some((a, b, c)) => {
                let pair = GradientPair { norm_a: length(a)?, norm_b: length(b)?, inner: cell(c)? };
                if pair.inner.abs() > pair.norm_a * pair.norm_b * (1.0 + 1e-4) + 1e-12 {
                    return Err(invalid(format!(
                        "row {number} of the sensitivities: the inner product {} is larger than \
                         the norms {} and {} allow",
                        pair.inner, pair.norm_a, pair.norm_b
                    )));
                }
                Some(pair)
            }
            None => None,
        };
        let distance = match (sensitivity, pair) {
            (Some(column), _) => length(column)?,
            (None, Some(pair)) => pair.distance(),
            (None, None) => 0.0,
        };
        let name = if mode == Mode::Record {
            record.and_then(|column| cells.get(column)).cloned().unwrap_or_default()
        } else {
            String::new()
        };
        let rows = records.entry(name).or_default();
        let at = match step {
            Some(column) => {
                let value = cell(column)?;
                if value < 1.0 || value.fract() != 0.0 {
                    return Err(invalid(format!(
                        "row {number} of the sensitivities: step {value} is not a whole number \
                         of at least 1"
                    )));
                }
                value as u64
            }
            None => rows.len() as u64 + 1,
        };
        rows.push(Row { step: at, sensitivity: distance, pair });
    }
    Sensitivities::new(mode, records.into_iter().collect())
}
