//! UCI Adult, built in: predict from census answers whether an income is above 50,000 dollars.
//!
//! 108 features: six numbers, then the indicators of eight categories (102, missing answers `?`
//! being a category of their own), every one standardised with the public constants of
//! `constants.rs`. Label 1 is `>50K`. Cherubin et al. train a 108-128-2 network with tanh on 80 %
//! of the 32,561 training records ("Closed-form bounds for DP-SGD against record-level inference
//! attacks", section 5). Data: Becker and Kohavi, CC BY 4.0; see `README.md` beside this file.

mod constants;

use super::bytes::hexadecimal;
use super::columns::{Cell, Classes, Column, Encoder};
use super::error::{DataError, refuse};
use super::{Dataset, Provenance, Split};
use constants::{CATEGORIES, NUMBERS, TRAINING_RECORDS};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::Path;

/// The columns of the original files.
const NAMES: [&str; 15] = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
];
const PACKED: &[u8] = include_bytes!("adult.columns.gz");
/// SHA-256 of the packed file, of `adult.data` and of `adult.test`.
pub(super) const SHA256: [&str; 3] = [
    "78dc94477fb20522d167a7a2b21f4d8f520fb8cd9adead8034681511f5c12524",
    "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
];
/// The feature that is the standardised age, the attribute of the papers' inference game.
pub const AGE_FEATURE: usize = 0;
/// The ages that occur.
pub const AGES: std::ops::RangeInclusive<u32> = 17..=90;

/// The value of [`AGE_FEATURE`] for an age in years.
///
/// ```
/// assert_eq!(training::data::adult::age_feature(17), (-21.5816 / 13.6404) as f32);
/// ```
pub fn age_feature(years: u32) -> f32 {
    let (_, _, mean, deviation) = NUMBERS[0];
    ((f64::from(years) - mean) / deviation) as f32
}

/// Mean and deviation by which a numeric column is standardised.
pub fn scale(column: &str) -> Option<(f64, f64)> {
    let found = NUMBERS.iter().find(|(name, ..)| *name == column);
    found.map(|(_, _, mean, deviation)| (*mean, *deviation))
}

fn unpacked() -> Result<String, String> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(PACKED)
        .read_to_string(&mut text)
        .map_err(|error| format!("cannot be unpacked: {error}"))?;
    Ok(text)
}

/// The cells column by column.
fn table(text: &str) -> Result<Vec<Vec<&str>>, String> {
    let columns: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let rows = columns.first().map_or(0, Vec::len);
    if columns.len() != NAMES.len() || rows <= TRAINING_RECORDS {
        return Err(format!("{} columns of {rows} cells", columns.len()));
    }
    match columns.iter().find(|column| column.len() != rows) {
        Some(ragged) => Err(format!("columns of {rows} and of {} cells", ragged.len())),
        None => Ok(columns),
    }
}

fn columns() -> Vec<Column> {
    let numbers = NUMBERS.iter().map(|(name, _, mean, deviation)| Column {
        name: (*name).to_owned(),
        mean: Some(*mean),
        deviation: Some(*deviation),
        ..Column::default()
    });
    let categories = CATEGORIES.iter().map(|category| Column {
        name: category.name.to_owned(),
        categories: category.values.iter().map(|(value, _)| (*value).to_owned()).collect(),
        shares: category
            .values
            .iter()
            .map(|(_, records)| f64::from(*records) / TRAINING_RECORDS as f64)
            .collect(),
        ..Column::default()
    });
    numbers.chain(categories).collect()
}

/// The published training and test records.
///
/// # Errors
/// None unless the program itself is damaged.
///
/// ```
/// let adult = training::data::adult::load()?;
/// assert_eq!((adult.train.len(), adult.train.shape.len()), (32_561, 108));
/// assert_eq!(adult.test.map(|test| test.len()), Some(16_281));
/// # Ok::<(), training::data::DataError>(())
/// ```
pub fn load() -> Result<Split, DataError> {
    let here = Path::new("adult (built in)");
    let broken = |problem: String| refuse(here, problem);
    let text = unpacked().map_err(broken)?;
    let cells = table(&text).map_err(broken)?;
    let header = NAMES.map(str::to_owned);
    let classes = Classes::Names(vec!["<=50K".to_owned(), ">50K".to_owned()]);
    let (plan, rows) = (columns(), cells[0].len());
    let part = |rows: std::ops::Range<usize>| -> Result<Dataset, String> {
        let mut encoder = Encoder::new(&header, "income", &classes, &plan)?;
        for row in rows {
            let record: Vec<Cell<'_>> =
                cells.iter().map(|column| Cell::Text(column[row])).collect();
            encoder.push(&record).map_err(|problem| format!("row {}: {problem}", row + 1))?;
        }
        encoder.finish(Provenance {
            name: "adult".to_owned(),
            sha256: vec![SHA256[0].to_owned()],
            licence: Some("CC BY 4.0".to_owned()),
            ..Provenance::default()
        })
    };
    Ok(Split {
        train: part(0..TRAINING_RECORDS).map_err(broken)?,
        test: Some(part(TRAINING_RECORDS..rows).map_err(broken)?),
    })
}

/// Rebuilds the original `adult.data` and `adult.test` from the packed columns.
pub(super) fn originals() -> Result<[String; 2], String> {
    let text = unpacked()?;
    let cells = table(&text)?;
    let mut files = [String::new(), "|1x3 Cross validator\n".to_owned()];
    for row in 0..cells[0].len() {
        let test = usize::from(row >= TRAINING_RECORDS);
        let record: Vec<&str> = cells.iter().map(|column| column[row]).collect();
        files[test].push_str(&record.join(", "));
        files[test].push_str(if test == 1 { ".\n" } else { "\n" });
    }
    Ok(files.map(|file| file + "\n"))
}

/// Checks that the built-in records are the published ones.
///
/// # Errors
/// Which file differs.
pub fn verify() -> Result<(), DataError> {
    let here = Path::new("adult (built in)");
    let files = originals().map_err(|problem| refuse(here, problem))?;
    let digests = files.map(|file| hexadecimal(Sha256::digest(file.as_bytes()).as_slice()));
    for ((name, found), expected) in
        ["adult.data", "adult.test"].iter().zip(digests).zip(&SHA256[1..])
    {
        if found != *expected {
            return Err(refuse(here, format!("rebuilt {name} has SHA-256 {found}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_records_are_the_published_ones() {
        let packed = hexadecimal(Sha256::digest(PACKED).as_slice());
        assert_eq!(packed, SHA256[0]);
        verify().unwrap();
        assert!(PACKED.len() <= 600_000);
    }

    /// Counts and first records as `adult.names` and `adult.data` state them.
    #[test]
    fn features_and_labels() {
        let Split { train, test } = load().unwrap();
        let test = test.unwrap();
        assert_eq!((train.len(), test.len(), train.classes), (32_561, 16_281, 2));
        assert_eq!((train.shape.len(), train.columns.len()), (108, 108));
        // The published share of >50K over both files is 23.93 %.
        let rich = |data: &Dataset| data.labels.iter().filter(|label| **label == 1).count();
        assert_eq!(rich(&train), 7_841);
        let share = (rich(&train) + rich(&test)) as f64 / 48_842.0;
        assert!((share - 0.2393).abs() < 5e-5, "{share}");
        // 39, State-gov, 77516, Bachelors, 13, Never-married, …, <=50K.
        let first = train.row(0);
        assert_eq!((first[AGE_FEATURE], train.labels[0]), (age_feature(39), 0));
        let state_gov =
            train.columns.iter().position(|name| name == "workclass=State-gov").unwrap();
        let private = train.columns.iter().position(|name| name == "workclass=Private").unwrap();
        assert!(first[state_gov] > 4.0 && first[private] < 0.0);
        assert!(train.features.iter().chain(&test.features).all(|x| x.is_finite()));
    }

    /// The stated constants are those of the published file: every standardised feature has mean
    /// 0 and variance 1 over it. Means are stated to 4 decimals, so that is the tolerance.
    #[test]
    fn constants_are_those_of_the_published_file() {
        let train = load().unwrap().train;
        for feature in 0..108 {
            let values = (0..train.len()).map(|row| f64::from(train.row(row)[feature]));
            let (sum, squares) =
                values.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
            let n = train.len() as f64;
            assert!((sum / n).abs() < 1e-4, "{}: mean {}", train.columns[feature], sum / n);
            let variance = squares / n;
            assert!((variance - 1.0).abs() < 1e-3, "{}: {variance}", train.columns[feature]);
        }
    }
}
