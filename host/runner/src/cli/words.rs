//! Enums whose values have names, as the values of flags.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use model::words::Word;

/// Reads one of an enum's names; help and errors list them.
pub fn one_of<T: Word + Send + Sync>() -> impl TypedValueParser<Value = T> {
    some_of(T::ALL)
}

/// Reads one of the names of these; help and errors list them.
pub fn some_of<T: Word + Send + Sync>(some: &[T]) -> impl TypedValueParser<Value = T> + use<T> {
    let values = some.iter().map(|word| value(word.name(), word.about()));
    PossibleValuesParser::new(values).try_map(|name| T::named(&name).ok_or("an unknown name"))
}

/// A name and its documentation, as help lists them.
pub fn value(name: &'static str, about: &'static str) -> PossibleValue {
    PossibleValue::new(name).help(about.trim_end_matches('.'))
}
