//! The collector of traces that a scenario names: its address, and the header fields that it asks
//! for, which the environment holds.

use http::header::{HeaderName, HeaderValue};
use reader::Problem;

use super::Resolution;
use crate::parts::Collector;
use model::redact::unescaped;
use model::target::{Target, TargetError};

/// Holds header fields for the collector, as for every program that speaks OTLP.
pub(super) const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

impl Resolution<'_> {
    /// Returns the collector that the scenario names, if it names one.
    pub(super) fn collector(&mut self) -> Option<Collector> {
        let said = self.source.scenario.report.otlp.as_ref()?;
        let target = match Target::parse(&said.value) {
            Ok(target) => target,
            Err(error) => {
                let what = match &error {
                    TargetError::Credentials => {
                        "`report.otlp`: the URL contains a user name or password".to_owned()
                    }
                    _ => format!("`report.otlp`: {error}"),
                };
                let problem = Problem::new(what).at(said.place.clone(), "this");
                let problem = problem.help(format!(
                    "give the URL of OTLP over HTTP, such as http://127.0.0.1:4318; keys for it go into the variable {HEADERS}"
                ));
                self.faults.scenario.push(match error {
                    TargetError::Credentials => problem.secret(),
                    _ => problem,
                });
                return None;
            }
        };
        let given = self.source.variables.get(HEADERS).unwrap_or_default();
        match headers(&given) {
            Ok(headers) => Some(Collector { target, headers }),
            Err(what) => {
                let what = format!("the variable {HEADERS}, for `report.otlp`: {what}");
                self.problem(&what, &said.place);
                None
            }
        }
    }
}

/// Reads `name=value,other=value`, where values may have `%20` for a space and the like (OpenTelemetry
/// protocol exporter, and W3C Baggage). What is wrong does not repeat a value.
fn headers(text: &str) -> Result<Vec<(String, String)>, String> {
    let pairs = text.split(',').map(str::trim);
    let pairs = pairs.filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| "expected `NAME=VALUE`, several with a comma between".to_owned())?;
            let (name, value) = (name.trim(), unescaped(value.trim()));
            let parsed = HeaderName::try_from(name)
                .map_err(|_| "a name in it is not the name of a header field".to_owned())?;
            if HeaderValue::try_from(&value).is_err() {
                return Err(format!(
                    "the value of `{parsed}` has characters that a header cannot contain"
                ));
            }
            Ok((parsed.as_str().to_owned(), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_fields_are_those_of_the_specification() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        for (text, expected) in [
            ("", vec![]),
            ("api-key=k", vec![pair("api-key", "k")]),
            (
                " Authorization = Bearer%20a=b%2Cc , x=1,",
                vec![pair("authorization", "Bearer a=b,c"), pair("x", "1")],
            ),
            ("x=100%", vec![pair("x", "100%")]),
        ] {
            assert_eq!(headers(text), Ok(expected), "{text}");
        }
        for text in ["secret", "a b=secret", "x=secret%0d%0ay"] {
            let refused = headers(text).unwrap_err();
            assert!(!refused.contains("secret"), "{refused}");
        }
    }
}
