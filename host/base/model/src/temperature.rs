//! Sampling temperature: the randomness of a server's choice of tokens.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The sampling temperature of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Temperature {
    /// Requests state this number. 0 asks for the likeliest token at every step.
    Of(f64),
    /// Requests state none, so each server uses its own or its model's.
    Server,
}

/// Two runs with the same prompts then get the same answers, if the server is deterministic.
impl Default for Temperature {
    fn default() -> Self {
        Temperature::Of(0.0)
    }
}

impl Temperature {
    /// The word for [`Temperature::Server`].
    pub const SERVER: &'static str = "server";

    /// The number that requests state.
    pub fn stated(self) -> Option<f64> {
        match self {
            Temperature::Of(number) => Some(number),
            Temperature::Server => None,
        }
    }
}

impl FromStr for Temperature {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == Self::SERVER {
            return Ok(Temperature::Server);
        }
        let number: Result<f64, _> = text.parse();
        number
            .map(Temperature::Of)
            .map_err(|_| format!("expected a number of at least 0, or {:?}", Self::SERVER))
    }
}

impl fmt::Display for Temperature {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Temperature::Of(number) => number.fmt(out),
            Temperature::Server => out.pad(Self::SERVER),
        }
    }
}

impl Serialize for Temperature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Temperature::Of(number) => serializer.serialize_f64(*number),
            Temperature::Server => serializer.serialize_str(Self::SERVER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_number_or_server() {
        assert_eq!("0.7".parse(), Ok(Temperature::Of(0.7)));
        assert_eq!("server".parse(), Ok(Temperature::Server));
        assert!("hot".parse::<Temperature>().is_err());
        for temperature in [Temperature::Of(0.25), Temperature::Server] {
            assert_eq!(temperature.to_string().parse(), Ok(temperature));
        }
        assert_eq!(Temperature::default().stated(), Some(0.0));
        assert_eq!(Temperature::Server.stated(), None);
    }
}
