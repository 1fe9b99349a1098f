//! One item or a list of them: `"delta": 1e-5` and `"delta": [1e-5, 1e-6]`.

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IntoDeserializer, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::marker::PhantomData;

/// Any number of items.
pub(crate) fn several<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_any(OneOrMany(PhantomData))
}

/// A text, or a number as its text: `"records": "all"` and `"records": 100`.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(text),
        number @ Value::Number(_) => Ok(number.to_string()),
        other => Err(serde::de::Error::custom(format!("{other} is neither a text nor a number"))),
    }
}

struct OneOrMany<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
    type Value = Vec<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("one item or a list of them")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Self::Value, E> {
        one(number.into_deserializer())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
        one(number.into_deserializer())
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
        one(number.into_deserializer())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        one(text.into_deserializer())
    }
}

fn one<'de, T: Deserialize<'de>, D: Deserializer<'de>>(item: D) -> Result<Vec<T>, D::Error> {
    T::deserialize(item).map(|item| vec![item])
}
