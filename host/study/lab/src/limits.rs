//! Limits are read alike, and their mistakes have the same messages for every reader. A lab stands
//! above all readers, so the test is here; the cases are data, in `result/src/limit/cases.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::objective::Constraint;
use compare::Condition;
use compare::until::Until;
use result::limit::Difference;
use result::metric::Objective;
use result::threshold::Threshold;
use search::slo::Limit;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    read: Vec<Meaning>,
    wrong: Vec<Wrong>,
}

/// Limits that mean the same.
#[derive(Deserialize)]
struct Meaning {
    #[serde(rename = "as")]
    meaning: String,
    #[serde(flatten)]
    texts: BTreeMap<User, Vec<String>>,
}

/// Limits with the same mistake.
#[derive(Deserialize)]
struct Wrong {
    words: String,
    #[serde(flatten)]
    texts: BTreeMap<User, Vec<String>>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
enum User {
    Threshold,
    Goodput,
    Slo,
    Until,
    Compare,
    Lab,
}

const USERS: [User; 6] =
    [User::Threshold, User::Goodput, User::Slo, User::Until, User::Compare, User::Lab];

impl User {
    /// The meaning of a limit, or its mistake, as text.
    fn read(self, text: &str) -> Result<String, String> {
        match self {
            User::Threshold => Ok(text.parse::<Threshold>()?.to_string()),
            User::Slo => Ok(text.parse::<Limit>()?.to_string()),
            User::Until => Ok(text.parse::<Until>()?.to_string()),
            User::Goodput => {
                let Objective { metric, at_most_ms } = text.parse()?;
                Ok(format!("{metric} <= {at_most_ms} ms"))
            }
            User::Compare => {
                let Condition { figure, limit, .. } = text.parse()?;
                Ok(match limit {
                    Difference::Percent(amount) => format!("{figure} {amount:+} %"),
                    Difference::Absolute(amount) => format!("{figure} {amount:+}"),
                })
            }
            User::Lab => Ok(text.parse::<Constraint>()?.threshold.to_string()),
        }
    }

    fn sign(self, text: &str) -> &'static str {
        let signs: &[&str] = match self {
            User::Threshold | User::Lab => &["<=", ">=", "<", ">"],
            User::Slo => &["<=", "<", ">=", ">"],
            User::Goodput => &[":"],
            User::Until => &["\u{b1}", "+-", "+/-"],
            User::Compare => &[" +", " -"],
        };
        let found = signs.iter().find(|sign| text.contains(**sign));
        found.map_or("", |sign| sign.trim())
    }
}

#[test]
fn readers_of_limits_agree_on_values_and_mistakes() {
    let cases = include_str!("../../../measure/result/src/limit/cases.toml");
    let cases: Cases = toml::from_str(cases).unwrap();
    let texts = |texts: &BTreeMap<User, Vec<String>>| -> Vec<(User, String)> {
        let each = texts.iter();
        each.flat_map(|(user, texts)| texts.iter().map(move |text| (*user, text.clone()))).collect()
    };
    let read = cases.read.iter().flat_map(|case| {
        let texts = texts(&case.texts).into_iter();
        texts.map(move |(user, text)| (user, text, Ok(case.meaning.clone())))
    });
    let wrong = cases.wrong.iter().flat_map(|case| {
        texts(&case.texts).into_iter().map(move |(user, text)| {
            let words = case.words.replace("SIGN", user.sign(&text));
            let message = format!("`{}`: {words}", text.trim());
            (user, text, Err(message))
        })
    });
    let mut others = Vec::new();
    let mut checked: BTreeMap<(User, bool), usize> = BTreeMap::new();
    for (user, text, wanted) in read.chain(wrong) {
        let found = user.read(&text);
        *checked.entry((user, found.is_ok())).or_default() += 1;
        if found != wanted {
            others.push(format!("{user:?} {text:?}:\n  wanted {wanted:?}\n  found  {found:?}"));
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
    for user in USERS {
        for is_read in [true, false] {
            let many = checked.get(&(user, is_read)).copied().unwrap_or_default();
            assert!(many >= 4, "{user:?}, {is_read}: {many}");
        }
    }
}
