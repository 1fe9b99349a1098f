//! What people type, read as documents read it. The keys of a question are its flags: a field says both, and a
//! command takes the question as it is. Ranges are checked where the meaning is known; here a text becomes a number, so
//! that `-1`, `nan` and `1e6` all reach the message that names them.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::value::Error;
use serde::de::{DeserializeOwned, IntoDeserializer};
use vocabulary::{LensName, Quantity};

/// Any number, including negative and non-finite ones.
///
/// # Errors
/// A sentence that names what was typed.
///
/// ```
/// use answers::flags::real;
/// assert_eq!(real("1e-5"), Ok(1e-5));
/// assert!(real("--delta").is_err());
/// ```
pub fn real(text: &str) -> Result<f64, String> {
    let typed = text.trim().replace('_', "");
    let number = typed
        .parse()
        .map_err(|_| format!("`{text}` is not a number; write it like 0.01 or 1e-5"))?;
    let digits = typed.split(['e', 'E']).next().unwrap_or_default();
    if number == 0.0 && digits.contains(|digit: char| ('1'..='9').contains(&digit)) {
        return Err(format!("`{text}` is closer to 0 than any double-precision number"));
    }
    Ok(number)
}

/// A whole number of at least 0; `1e6` is one.
///
/// # Errors
/// A sentence that names what was typed.
///
/// ```
/// use answers::flags::nonnegative_integer;
/// assert_eq!(nonnegative_integer("1e6"), Ok(1_000_000));
/// assert!(nonnegative_integer("1.5").unwrap_err().contains("1.5"));
/// ```
pub fn nonnegative_integer(text: &str) -> Result<u64, String> {
    let complaint = || format!("`{text}` is not a whole number; write it like 1000 or 1e6");
    let typed = text.trim().replace('_', "");
    if let Ok(integer) = typed.parse::<u64>() {
        return Ok(integer);
    }
    let number: f64 = typed.parse().map_err(|_| complaint())?;
    if number == 0.0 && typed.contains(|digit: char| ('1'..='9').contains(&digit)) {
        return Err(complaint());
    }
    if number.fract() != 0.0 || !number.is_finite() {
        return Err(complaint());
    }
    if number < 0.0 {
        return Err(format!("`{text}` is negative; give a whole number of at least 1"));
    }
    if number > 9_007_199_254_740_992.0 {
        return Err(format!("`{text}` is above 2^53, more than can be counted exactly"));
    }
    Ok(number as u64)
}

/// A whole number of at least 1; `1e6` is one.
///
/// # Errors
/// A sentence that names what was typed.
pub fn integer(text: &str) -> Result<u64, String> {
    match nonnegative_integer(text)? {
        0 => Err(format!("`{text}` is not at least 1")),
        integer => Ok(integer),
    }
}

/// The name of a lens.
///
/// # Errors
/// A sentence with the nearest name.
pub fn lens(text: &str) -> Result<LensName, String> {
    LensName::parse(text).ok_or_else(|| {
        let names = LensName::ALL.map(LensName::as_str);
        match vocabulary::nearest(text, &names) {
            Some(name) => format!("there is no lens `{text}`; did you mean `{name}`?"),
            None => format!("there is no lens `{text}`; the lenses are {}", names.join(", ")),
        }
    })
}

/// The name of a quantity.
///
/// # Errors
/// A sentence with all names.
pub fn quantity(text: &str) -> Result<Quantity, String> {
    Quantity::parse(text).ok_or_else(|| {
        format!("it must be one of: {}", Quantity::ALL.map(Quantity::as_str).join(", "))
    })
}

/// One of these words. They are the ones that serde knows for `T`: a set is spelled once.
pub fn word<T>(words: impl Into<PossibleValuesParser>) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    words.into().try_map(|text| T::deserialize(IntoDeserializer::<Error>::into_deserializer(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_reaches_us() {
        assert_eq!(real("-1"), Ok(-1.0));
        assert!(real("nan").is_ok_and(f64::is_nan));
        assert_eq!(real("1_000.5"), Ok(1000.5));
        assert!(real("1e-400").unwrap_err().contains("closer to 0"));
        assert_eq!(real("0e5"), Ok(0.0));
        for bad in ["", "x", "1,5"] {
            assert!(real(bad).unwrap_err().contains("is not a number"));
        }
    }

    #[test]
    fn counts_are_whole() {
        assert_eq!(integer("1_000"), Ok(1000));
        assert_eq!(integer("2.5e3"), Ok(2500));
        for (bad, part) in
            [("0", "at least 1"), ("-3", "negative"), ("1e20", "2^53"), ("inf", "whole")]
        {
            assert!(integer(bad).unwrap_err().contains(part), "{bad}");
        }
    }
}
