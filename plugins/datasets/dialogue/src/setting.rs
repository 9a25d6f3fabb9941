//! Keys of a configuration that take a word or a distribution: `output-len = "recorded"`, or
//! `output-len = 128`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use runner_plugin::lengths::{Distribution, Lengths, Stream};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use runner_plugin::Error;

/// A word, or a distribution from which numbers are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting<W> {
    Word(W),
    Drawn(Distribution),
}

impl<'de, W: DeserializeOwned> Deserialize<'de> for Setting<W> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<W>(PhantomData<W>);

        impl<'de, W: DeserializeOwned> Visitor<'de> for Either<W> {
            type Value = Setting<W>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(
                    "a word, a number, or a table like { distribution = \"uniform\", min = 100, max = 200 }",
                )
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Setting<W>, E> {
                W::deserialize(StrDeserializer::new(word)).map(Setting::Word)
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Setting<W>, E> {
                Ok(Setting::Drawn(Distribution::constant(value as f64)))
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Setting<W>, E> {
                Ok(Setting::Drawn(Distribution::constant(value as f64)))
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Setting<W>, E> {
                Ok(Setting::Drawn(Distribution::constant(value)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Setting<W>, A::Error> {
                Distribution::deserialize(MapAccessDeserializer::new(map)).map(Setting::Drawn)
            }
        }

        deserializer.deserialize_any(Either(PhantomData))
    }
}

impl<W: JsonSchema> JsonSchema for Setting<W> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}OrDistribution", W::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "anyOf": [generator.subschema_for::<W>(), generator.subschema_for::<Distribution>()],
        })
    }
}

pub fn lengths(key: &str, given: Option<&Distribution>, default: u32) -> Result<Lengths, Error> {
    match given {
        Some(distribution) => distribution.lengths(key, 1..=crate::LONGEST),
        None => Ok(Lengths::constant(default)),
    }
}

/// A number of seconds drawn from a distribution, as nanoseconds: at least 0, and at most
/// [`LONGEST_WAIT`](crate::LONGEST_WAIT).
pub fn wait(distribution: &Distribution, random: &mut impl Stream) -> u64 {
    let seconds = distribution.draw(random).clamp(0.0, crate::LONGEST_WAIT);
    (seconds * 1e9).round() as u64
}

/// Checks that a distribution of seconds has no impossible number.
pub fn check_wait(key: &str, distribution: &Distribution) -> Result<(), Error> {
    for p in [0.0, 0.5] {
        let seconds = distribution.quantile(p);
        // The tail of a normal distribution may reach below zero; half of it may not.
        if !seconds.is_finite()
            || (p > 0.0 || distribution.as_constant().is_some()) && seconds < 0.0
        {
            return Err(Error::InvalidConfig(format!(
                "`{key}` gives {seconds} seconds; expected 0 or more"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    enum Word {
        Recorded,
        Run,
    }

    #[derive(Debug, Deserialize)]
    struct Config {
        length: Setting<Word>,
    }

    fn read(json: &str) -> Result<Setting<Word>, Error> {
        runner_plugin::parse::<Config>(json).map(|config| config.length)
    }

    #[test]
    fn a_key_takes_a_word_a_number_or_a_table() {
        assert_eq!(read(r#"{"length": "recorded"}"#), Ok(Setting::Word(Word::Recorded)));
        assert_eq!(read(r#"{"length": "run"}"#), Ok(Setting::Word(Word::Run)));
        for json in [
            r#"{"length": 5}"#,
            r#"{"length": 5.0}"#,
            r#"{"length": {"distribution": "constant", "value": 5}}"#,
        ] {
            assert_eq!(read(json), Ok(Setting::Drawn(Distribution::constant(5.0))), "{json}");
        }
        for (json, expected) in [
            (
                r#"{"length": "all"}"#,
                "key `length`: unknown variant `all`, expected `recorded` or `run`",
            ),
            (
                r#"{"length": {"distribution": "uniform", "min": 1}}"#,
                "a uniform distribution needs `max`",
            ),
            (r#"{"length": []}"#, "expected a word, a number, or a table"),
        ] {
            let Err(Error::InvalidConfig(message)) = read(json) else {
                panic!("{json} was taken");
            };
            assert!(message.contains(expected), "{json}: {message}");
        }
    }

    #[test]
    fn waits_below_zero_are_refused() {
        assert_eq!(check_wait("w", &Distribution::constant(0.0)), Ok(()));
        assert!(check_wait("w", &Distribution::constant(-0.1)).is_err());
    }
}
