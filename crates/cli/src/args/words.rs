//! Words of a closed set, read as documents read them.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::value::Error;
use serde::de::{DeserializeOwned, IntoDeserializer};

/// One of these words. They are the ones that serde knows for `T`: a set is spelled once.
pub fn word<T>(words: impl Into<PossibleValuesParser>) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    words.into().try_map(|text| T::deserialize(IntoDeserializer::<Error>::into_deserializer(text)))
}
