//! Enums whose values have names, as the values of flags.

use std::ffi::OsStr;

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

/// True if a word of a command line is this flag (`--seed`), with a value behind `=` or without.
pub fn is_flag(word: &OsStr, flag: &str) -> bool {
    word.to_string_lossy().split('=').next() == Some(flag)
}

/// A name and its documentation, as help lists them.
pub fn value(name: &'static str, about: &'static str) -> PossibleValue {
    PossibleValue::new(name).help(about.trim_end_matches('.'))
}
