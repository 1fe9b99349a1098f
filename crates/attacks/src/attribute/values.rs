//! An attribute and the values that it could have: which features of a record change, and to what.

use super::error::{AttributeError, invalid};
use training::data::{DataSource, Dataset, adult};

/// One candidate value.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// As people write it.
    pub name: String,
    /// What becomes of a record's features.
    pub features: Vec<(usize, f32)>,
}

/// An attribute with its candidate values.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    pub name: String,
    pub values: Vec<Value>,
}

/// Values of a number that are taken from the records at most.
const MOST_VALUES: usize = 1024;

impl Attribute {
    /// The column `name` of a data set: a number, or a category with an indicator for each value.
    ///
    /// `values` lists the candidates, `17..90` or `Private,State-gov`; without it they are all
    /// categories, the ages 17 to 90 for the age of the built-in data set, or else the numbers
    /// that occur.
    ///
    /// ```
    /// use attacks::attribute::Attribute;
    /// use training::data::{DataSource, adult};
    /// let (source, data) = (DataSource::adult(), adult::load()?.train);
    /// let age = Attribute::of_column(&source, &data, "age", None)?;
    /// assert_eq!((age.values.len(), age.values[0].name.as_str()), (74, "17"));
    /// let sex = Attribute::of_column(&source, &data, "sex", None)?;
    /// assert_eq!(sex.values.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Columns that are not there and values that the column cannot have.
    pub fn of_column(
        source: &DataSource,
        data: &Dataset,
        name: &str,
        values: Option<&str>,
    ) -> Result<Self, AttributeError> {
        let indicators: Vec<(usize, &str)> = data
            .columns
            .iter()
            .enumerate()
            .filter_map(|(feature, column)| Some((feature, column.strip_prefix(name)?)))
            .filter_map(|(feature, rest)| Some((feature, rest.strip_prefix('=')?)))
            .collect();
        let found = if let Some(feature) = data.columns.iter().position(|column| column == name) {
            let known = source.name.as_deref() == Some("adult") && name == "age";
            let scale = source.scale(name);
            let numbers = match values {
                Some(text) => numbers(text)?,
                None if known => adult::AGES.map(f64::from).collect(),
                None => occurring(data, feature, scale)?,
            };
            let value = |number: f64| Value {
                name: number.to_string(),
                features: vec![(feature, ((number - scale.0) / scale.1) as f32)],
            };
            numbers.into_iter().map(value).collect()
        } else if indicators.is_empty() {
            let mut known: Vec<&str> =
                data.columns.iter().filter_map(|column| column.split('=').next()).collect();
            known.dedup();
            let some = known.iter().take(20).copied().collect::<Vec<_>>().join(", ");
            return invalid(format!(
                "there is no column `{}`; the columns are {some}{}",
                shortened(name),
                if known.len() > 20 { ", …" } else { "" }
            ));
        } else {
            categories(data, &indicators, values)?
        };
        Self::new(name, found)
    }

    /// An attribute with these values.
    ///
    /// # Errors
    /// Fewer than two different values.
    pub fn new(name: &str, values: Vec<Value>) -> Result<Self, AttributeError> {
        let first = values.first().map(|value| &value.features);
        if values.iter().all(|value| Some(&value.features) == first) {
            return invalid(format!(
                "`{}` has {} value to tell apart; give at least two with --values",
                shortened(name),
                values.len().min(1)
            ));
        }
        if values.iter().flat_map(|value| &value.features).any(|(_, number)| !number.is_finite()) {
            return invalid(format!("a value of `{}` is not finite", shortened(name)));
        }
        Ok(Self { name: name.to_owned(), values })
    }

    /// Writes a record with one of the values in place of its own.
    pub fn substitute(&self, value: usize, row: &[f32], out: &mut Vec<f32>) {
        out.clear();
        out.extend_from_slice(row);
        for (feature, number) in &self.values[value].features {
            out[*feature] = *number;
        }
    }

    /// The number of the value of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn position(&self, name: &str) -> Result<usize, AttributeError> {
        match self.values.iter().position(|value| value.name == name) {
            Some(position) => Ok(position),
            None => invalid(format!(
                "`{}` is not among the values of `{}`: {} … {}",
                shortened(name),
                self.name,
                self.values[0].name,
                self.values[self.values.len() - 1].name
            )),
        }
    }
}

/// `17..90` (both ends, whole numbers) or `0,0.5,1`.
fn numbers(text: &str) -> Result<Vec<f64>, AttributeError> {
    if let Some((first, last)) = text.split_once("..") {
        let end = |text: &str| text.trim_start_matches('=').trim().parse::<i64>().ok();
        return match (end(first), end(last)) {
            (Some(first), Some(last)) if first < last && last - first < MOST_VALUES as i64 => {
                Ok((first..=last).map(|number| number as f64).collect())
            }
            _ => invalid(format!(
                "the range `{}` needs two whole numbers, the smaller one first, and at most {MOST_VALUES} values, such as 17..90",
                shortened(text)
            )),
        };
    }
    text.split(',')
        .map(|word| match word.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => invalid(format!("`{}` is not a number", shortened(word))),
        })
        .collect()
}

/// The numbers that occur, in the units of the file.
fn occurring(
    data: &Dataset,
    feature: usize,
    (mean, deviation): (f64, f64),
) -> Result<Vec<f64>, AttributeError> {
    let mut found: Vec<f32> = (0..data.len()).map(|row| data.row(row)[feature]).collect();
    found.sort_by(f32::total_cmp);
    found.dedup();
    if found.len() > MOST_VALUES {
        return invalid(format!(
            "`{}` has {} different values; say with --values which could be the secret",
            data.columns[feature],
            found.len()
        ));
    }
    // Features are f32, so six digits of the number are its own.
    let number = |x: f32| format!("{:.5e}", mean + deviation * f64::from(x)).parse().unwrap_or(0.0);
    Ok(found.into_iter().map(number).collect())
}

/// Indicators as they are written where the category holds and where it does not: the two numbers
/// that occur in the column.
fn categories(
    data: &Dataset,
    indicators: &[(usize, &str)],
    wanted: Option<&str>,
) -> Result<Vec<Value>, AttributeError> {
    let ends: Vec<(f32, f32)> = indicators
        .iter()
        .map(|(feature, _)| {
            let values = (0..data.len()).map(|row| data.row(row)[*feature]);
            values.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), x| {
                (low.min(x), high.max(x))
            })
        })
        .collect();
    let names: Vec<&str> = match wanted {
        Some(text) => text.split(',').map(str::trim).collect(),
        None => indicators.iter().map(|(_, name)| *name).collect(),
    };
    let value = |name: &&str| {
        let Some(place) = indicators.iter().position(|(_, known)| known == name) else {
            let known: Vec<&str> = indicators.iter().map(|(_, name)| *name).take(20).collect();
            return invalid(format!(
                "there is no category `{}`; there are {}",
                shortened(name),
                known.join(", ")
            ));
        };
        if ends[place].0 >= ends[place].1 {
            return invalid(format!(
                "no record, or every record, has the category `{}`, so its encoding is not known; \
                 leave it out of --values",
                shortened(name)
            ));
        }
        let features =
            indicators.iter().zip(&ends).enumerate().map(|(index, ((feature, _), ends))| {
                (*feature, if index == place { ends.1 } else { ends.0 })
            });
        Ok(Value { name: (*name).to_owned(), features: features.collect() })
    };
    names.iter().map(value).collect()
}

fn shortened(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_what_is_not_the_attribute() {
        let data = adult::load().unwrap().train;
        let source = DataSource::adult();
        let age = Attribute::of_column(&source, &data, "age", Some("20,39")).unwrap();
        let mut row = Vec::new();
        age.substitute(1, data.row(0), &mut row);
        assert_eq!(row, data.row(0), "the first record is 39");
        age.substitute(0, data.row(0), &mut row);
        assert_eq!(row[adult::AGE_FEATURE], adult::age_feature(20));
        assert_eq!(row[1..], data.row(0)[1..]);
        // The first record is in State-gov.
        let class = Attribute::of_column(&source, &data, "workclass", None).unwrap();
        class.substitute(class.position("State-gov").unwrap(), data.row(0), &mut row);
        assert_eq!(row, data.row(0));
        class.substitute(class.position("Private").unwrap(), data.row(0), &mut row);
        assert_eq!(row.iter().zip(data.row(0)).filter(|(a, b)| a != b).count(), 2);
    }

    #[test]
    fn errors_name_the_value() {
        let data = adult::load().unwrap().train;
        let source = DataSource::adult();
        let of = |name: &str, values: Option<&str>| {
            Attribute::of_column(&source, &data, name, values).unwrap_err().to_string()
        };
        assert!(of("height", None).contains("`height`") && of("height", None).contains("age"));
        assert!(of("age", Some("old")).contains("`old`"));
        assert!(of("age", Some("30")).contains("at least two"));
        assert!(of("sex", Some("Male,Other")).contains("`Other`"));
        assert!(of("fnlwgt", None).contains("--values"));
    }
}
