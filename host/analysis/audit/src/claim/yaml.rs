//! YAML as Python tools write it, as the JSON that it stands for.
//!
//! `serde-saphyr` reads it, and refuses texts that are built to exhaust a reader: aliases that
//! repeat aliases, and lists within lists without end. This module owns the bounds and the
//! messages.

use serde_json::Value;
use serde_saphyr::options::{NonFiniteFloatPolicy, Options};
use serde_saphyr::{Error, alias_limits, budget, options};

/// A text that is not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The place, if it is known: `line 3, column 7`.
    pub place: Option<String>,
    pub what: String,
}

const BOUNDS: &str = "it is more than a report can be: one document of at most 1,000,000 values, \
    64 of them inside each other, with aliases that repeat at most 10,000";

fn bounds() -> Options {
    options! {
        budget: budget! {
            max_depth: 64,
            max_nodes: 1_000_000,
            max_events: 2_500_000,
            max_documents: 1,
            max_recorded_anchor_events: 10_000,
            max_recorded_anchor_bytes: 1 << 20,
        },
        alias_limits: alias_limits! { max_total_replayed_events: 10_000 },
        // As in the JSON of Python tools, a number that JSON lacks is null.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    }
}

/// Reads a text with one document. Errors: the first place that is no YAML, that stands for no
/// JSON, or that is beyond a bound.
pub(super) fn parse(text: &str) -> Result<Value, Wrong> {
    serde_saphyr::from_str_with_options(text, bounds()).map_err(|error| wrong(&error))
}

fn wrong(error: &Error) -> Wrong {
    let place = error.location();
    let place = place.map(|at| format!("line {}, column {}", at.line(), at.column()));
    // An error within an alias's text has that alias around it.
    let mut cause = error;
    while let Error::AliasError { error, .. } = cause {
        cause = error;
    }
    let what = match cause {
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => BOUNDS.to_owned(),
        Error::DuplicateMappingKey { .. } => "a key stands twice in an object".to_owned(),
        cause => {
            let message = cause.to_string();
            let at = place.as_ref().map(|place| format!(" at {place}"));
            let without = at.and_then(|at| message.strip_suffix(&at).map(str::to_owned));
            without.unwrap_or(message)
        }
    };
    Wrong { place, what }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_values_of_each_kind() {
        let text = "\
            a: [1, -2, +3, 0x1f, 0o17, 1.5, 1.0e-05, .5, 18446744073709551615, 0.2.1]\n\
            b: [~, null, true, False, .inf, -.inf, .NaN, 2025-11-05]\n\
            c: ['1', \"true\", !!str 2, 'it''s']\n\
            d: {}\ne: []\nf:\n  - g: |\n      two\n      lines\n    h:\n  - 'v: w'\n2: x\n";
        let value = json!({
            "a": [1, -2, 3, 31, 15, 1.5, 1e-5, 0.5, u64::MAX, "0.2.1"],
            "b": [null, null, true, false, null, null, null, "2025-11-05"],
            "c": ["1", "true", "2", "it's"],
            "d": {}, "e": [], "f": [{ "g": "two\nlines\n", "h": null }, "v: w"], "2": "x",
        });
        assert_eq!(parse(text), Ok(value));
        assert_eq!(parse("%YAML 1.2\n---\na: 1\n...\n"), Ok(json!({ "a": 1 })));
    }

    #[test]
    fn expands_aliases() {
        let text = "a: &x {b: [1, 2]}\nc: *x\nd: [&y 5, *y, *x]\n";
        let b = json!({ "b": [1, 2] });
        let value = json!({ "a": b, "c": b, "d": [5, 5, b] });
        assert_eq!(parse(text), Ok(value));
    }

    #[test]
    fn errors_name_their_place() {
        for (text, place, what) in [
            ("a: [1, 2\n", "line 1, column 4", "unclosed bracket '['"),
            ("a: 1\na: 2\n", "line 2, column 1", "a key stands twice in an object"),
            ("? [a]\n: 1\n", "line 1, column 3", "expected string scalar"),
            ("a: *x\n", "line 1, column 4", "alias references unknown anchor"),
            ("a: 1\n---\nb: 2\n", "line 2, column 1", BOUNDS),
        ] {
            let place = Some(place.to_owned());
            let what = what.to_owned();
            assert_eq!(parse(text), Err(Wrong { place, what }), "{text}");
        }
        assert!(parse("a: &x [*x]\n").is_err());
    }

    #[test]
    fn depth_and_copies_have_a_bound() {
        let nested = |deep: usize| format!("{}1{}", "[".repeat(deep), "]".repeat(deep));
        assert!(parse(&nested(60)).is_ok());
        // Each list repeats the list before it nine times: a billion laughs.
        let mut bomb = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
        for level in 1..9 {
            let before = format!("*a{}, ", level - 1).repeat(9);
            bomb += &format!("a{level}: &a{level} [{before}]\n");
        }
        let long = format!("a: &a '{}'\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(99));
        for text in [nested(65), "- ".repeat(1 << 16), bomb, long] {
            let wrong = parse(&text).unwrap_err();
            assert_eq!(wrong.what, BOUNDS, "{wrong:?}");
        }
        let wrong = parse(&"[".repeat(1 << 20)).unwrap_err();
        assert_eq!(wrong.what, "recursion limit exceeded");
    }
}
