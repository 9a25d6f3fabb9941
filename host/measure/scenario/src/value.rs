//! The values that a key can have: texts, numbers, times, sizes, paths, lists of them, and enums
//! whose values have names.

use std::num::{IntErrorKind, ParseIntError};
use std::path::PathBuf;

use serde::Serializer;

use crate::field::{Maybe, Value};
use crate::key::Key;
use crate::load::Arrival;
use model::adapter::Assignment;
use model::arrival::{Shape, ThinkSpread};
use model::connection::{PairOrder, Reuse, Timestamps, Version};
use model::duration::Span;
use model::identity::{Form, Routing};
use model::session::{AfterFailure, Cache, History, LaneSalt, Users, Warming};
use model::temperature::Temperature;
use model::words::{self, Word};
use reader::words::list;
use reader::{Located, Reader, Size, toml_text};

impl Value for String {
    fn expected() -> String {
        "a string".to_owned()
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        t.string(key)
    }

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Value for bool {
    fn expected() -> String {
        "`true` or `false`".to_owned()
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        t.boolean(key)
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "expected `true` or `false`".to_owned())
    }

    fn declare(key: &mut Key) {
        key.switch = true;
        key.check = Some(|text| Self::parse(text).map(drop));
    }
}

impl Value for u64 {
    fn expected() -> String {
        "a whole number of at least 0".to_owned()
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        t.integer(key)
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: ParseIntError| match error.kind() {
            IntErrorKind::PosOverflow => format!("expected at most {}", u64::MAX),
            _ => format!("expected {}", Self::expected()),
        })
    }
}

impl Value for f64 {
    fn expected() -> String {
        "a number".to_owned()
    }

    fn read(
        t: &mut Reader<'_, '_>,
        key: &'static str,
        expected: Option<&'static str>,
    ) -> Maybe<Self> {
        t.number(key, expected.unwrap_or("a number"))
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("expected {}", Self::expected()))
    }

    fn toml(&self) -> String {
        toml_text::number(*self).trim_end_matches(".0").to_owned()
    }

    /// JSON has no infinity; TOML's word for it stands in.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_infinite() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_f64(*self)
        }
    }
}

impl Value for Span {
    fn expected() -> String {
        "a duration such as \"30s\"".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: model::duration::ParseError| error.to_string())
    }
}

impl Value for Temperature {
    fn expected() -> String {
        format!("a number of at least 0, or {:?}", Self::SERVER)
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        t.number_or(key, &Self::expected(), Temperature::Of, Self::parse)
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
    }

    fn toml(&self) -> String {
        match self {
            Temperature::Of(number) => number.toml(),
            Temperature::Server => toml_text::string(Self::SERVER),
        }
    }
}

impl Value for Size {
    fn expected() -> String {
        "a size such as \"64MiB\"".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        Size::parse(text)
    }
}

impl Value for PathBuf {
    fn expected() -> String {
        "a path".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("it is empty".to_owned()),
            path => Ok(PathBuf::from(path)),
        }
    }

    fn toml(&self) -> String {
        toml_text::string(&self.to_string_lossy())
    }
}

fn toml_list<T: Value>(items: &[Located<T>]) -> String {
    let items: Vec<String> = items.iter().map(|item| item.value.toml()).collect();
    format!("[{}]", items.join(", "))
}

fn list_from_flag<T: Value>(
    flag: &str,
    texts: &[String],
) -> Result<Maybe<Vec<Located<T>>>, String> {
    let items: Result<Vec<Located<T>>, String> =
        texts.iter().map(|text| T::parse(text).map(|value| Located::flag(flag, value))).collect();
    Ok(Some(Located::flag(flag, items?)))
}

impl Value for Vec<Located<String>> {
    fn expected() -> String {
        "a string, or a list of strings".to_owned()
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        t.one_or_more(key)
    }

    fn parse(text: &str) -> Result<Self, String> {
        Ok(vec![Located::flag("", text.to_owned())])
    }

    fn from_flag(flag: &str, texts: &[String]) -> Result<Maybe<Self>, String> {
        list_from_flag(flag, texts)
    }

    fn toml(&self) -> String {
        match self.as_slice() {
            [only] => only.value.toml(),
            several => toml_list(several),
        }
    }

    fn declare(key: &mut Key) {
        key.many = true;
    }
}

impl Value for Vec<Located<f64>> {
    fn expected() -> String {
        "a list of numbers".to_owned()
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        t.numbers(key)
    }

    fn parse(text: &str) -> Result<Self, String> {
        Ok(vec![Located::flag("", f64::parse(text)?)])
    }

    fn from_flag(flag: &str, texts: &[String]) -> Result<Maybe<Self>, String> {
        list_from_flag(flag, texts)
    }

    fn toml(&self) -> String {
        toml_list(self)
    }

    fn declare(key: &mut Key) {
        key.many = true;
        key.check = Some(|text| f64::parse(text).map(drop));
    }
}

/// Makes values of enums whose values have names.
macro_rules! words {
    ($($Enum:ty),+) => { $(
        impl Value for $Enum {
            fn expected() -> String {
                let names: Vec<&str> = words::all::<$Enum>().collect();
                format!("one of {}", list(&names))
            }

            fn read(
                t: &mut Reader<'_, '_>,
                key: &'static str,
                _: Option<&'static str>,
            ) -> Maybe<Self> {
                t.word(key)
            }

            fn parse(text: &str) -> Result<Self, String> {
                text.parse()
            }

            fn declare(key: &mut Key) {
                let words = <$Enum>::ALL.iter();
                key.words = words.map(|word| (word.name(), word.about())).collect();
                key.check = Some(|text| Self::parse(text).map(drop));
            }
        }
    )+ };
}

words!(
    Arrival,
    Assignment,
    AfterFailure,
    Cache,
    Form,
    History,
    LaneSalt,
    Routing,
    Users,
    Warming,
    PairOrder,
    Reuse,
    Shape,
    ThinkSpread,
    Timestamps,
    Version
);
