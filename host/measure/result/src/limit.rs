//! The grammar of limits on figures: a figure, a relation, a number and its unit, as in `ttft.p99
//! <= 200ms`.
//!
//! Thresholds, objectives of requests and of searches, bounds on repeats, conditions of comparisons
//! and constraints of labs are written in it. This module owns the parts and the messages about
//! mistakes in them, so that one mistake has one message wherever it is made. Each of those users
//! owns the meaning of its limits: the allowed relations, the allowed figures, and the use of the
//! number.
//!
//! A *level* is a value of the figure itself: `<= 200ms`. A *difference* is the most by which it
//! may lie from another value, in its unit or in percent of that value: `+20ms`, `±5%`.

use std::cmp::Reverse;
use std::str::FromStr;

use crate::figure::Figure;
use crate::metric::objective;
use model::duration::{self, ParseError};
use model::number;

/// The subject of a threshold on the verdict, which is no figure.
pub(crate) const VERDICT: &str = "verdict";

pub struct Grammar<R: 'static> {
    pub signs: &'static [(&'static str, R)],
    pub numbers: Numbers,
    /// Example limits of this user, as text: "`ttft.p99 <= 200ms` or `verdict <= suspect`".
    pub example: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    Any,
    /// Zero and above, as the sign gives the direction.
    FromZero,
    AboveZero,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    AtMost,
    Below,
    AtLeast,
    Above,
}

pub const LEVELS: &[(&str, Relation)] = &[
    ("<=", Relation::AtMost),
    ("<", Relation::Below),
    (">=", Relation::AtLeast),
    (">", Relation::Above),
];

/// The directions of a difference, as written. A name has a `-` in it, so these two follow a space.
pub const DIRECTIONS: &[(&str, f64)] = &[("+", 1.0), ("-", -1.0)];

/// The sign of a difference to either side, as written.
pub const EITHER_SIDE: &[(&str, ())] = &[("\u{b1}", ()), ("+-", ()), ("+/-", ())];

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Difference {
    /// A percentage of the other value.
    Percent(f64),
    /// An amount in the figure's unit.
    Absolute(f64),
}

impl Relation {
    pub fn holds(self, seen: f64, level: f64) -> bool {
        match self {
            Relation::AtMost => seen <= level,
            Relation::Below => seen < level,
            Relation::AtLeast => seen >= level,
            Relation::Above => seen > level,
        }
    }

    pub fn sign(self) -> &'static str {
        LEVELS.iter().find(|(_, relation)| *relation == self).map_or("", |(sign, _)| sign)
    }
}

impl Difference {
    /// The difference in the other direction if `sign` is below zero.
    pub fn towards(self, sign: f64) -> Self {
        match self {
            Difference::Percent(amount) => Difference::Percent(sign * amount),
            Difference::Absolute(amount) => Difference::Absolute(sign * amount),
        }
    }
}

/// The mistakes in a limit, all of them, each with the expectation or the advice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{written}`: {}", self.mistakes())]
pub struct LimitError {
    written: String,
    mistakes: Vec<String>,
}

impl LimitError {
    /// The mistakes without the limit, for messages that show it otherwise.
    pub fn mistakes(&self) -> String {
        self.mistakes.join(". Besides, ").replace("?. Besides, ", "? Besides, ")
    }
}

impl From<LimitError> for String {
    fn from(error: LimitError) -> String {
        error.to_string()
    }
}

/// Several limits, such as the values of a repeated flag. Errors: the mistakes in each that is
/// wrong.
pub fn all<'t, T>(texts: impl IntoIterator<Item = &'t str>) -> Result<Vec<T>, Vec<LimitError>>
where
    T: FromStr<Err = LimitError>,
{
    let (mut limits, mut errors) = (Vec::new(), Vec::new());
    for text in texts {
        match text.parse() {
            Ok(limit) => limits.push(limit),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(limits) } else { Err(errors) }
}

/// A limit in its parts, and the mistakes in them so far.
pub struct Clause<'t, R> {
    pub subject: &'t str,
    /// The meaning of the sign.
    pub relation: R,
    pub number: &'t str,
    text: &'t str,
    sign: &'static str,
    numbers: Numbers,
    mistakes: Vec<String>,
}

impl<R: Copy> Grammar<R> {
    /// The parts of a limit. Errors: that it has no sign of this user's.
    pub fn read<'t>(&self, text: &'t str) -> Result<Clause<'t, R>, LimitError> {
        let text = text.trim();
        let Some((at, sign, relation)) = self.sign(text) else {
            let (signs, example) = (self.sign_list(), self.example);
            let mistake = format!("expected {signs} between a name and a number, as in {example}");
            return Err(LimitError { written: text.to_owned(), mistakes: vec![mistake] });
        };
        let mut written = Clause {
            subject: text[..at].trim(),
            relation,
            number: text[at + sign.len()..].trim(),
            text,
            sign,
            numbers: self.numbers,
            mistakes: Vec::new(),
        };
        if let ("<" | ">", Some(subject)) = (sign, written.subject.strip_suffix('=')) {
            written.subject = subject.trim_end();
            written.wrong(format!("write `{sign}=` in place of `={sign}`"));
        }
        if written.subject.is_empty() {
            written.wrong(format!("expected a name before `{sign}`, as in {}", self.example));
        }
        Ok(written)
    }

    /// The parts of a limit whose name and number are given apart, without a sign.
    pub fn unsigned<'t>(&self, name: &'t str, relation: R, number: &'t str) -> Clause<'t, R> {
        let (numbers, mistakes) = (self.numbers, Vec::new());
        Clause { subject: name, relation, number, text: name, sign: "", numbers, mistakes }
    }

    /// The sign that parts the name from the number: the first, and of two at one place the longer.
    /// A sign that is also in names counts only after a space, and the last one counts.
    fn sign(&self, text: &str) -> Option<(usize, &'static str, R)> {
        let is_in_names = self.signs.iter().any(|(sign, _)| *sign == "-");
        let found = self.signs.iter().flat_map(|(sign, relation)| {
            (text.match_indices(sign)).map(move |(at, _)| (at, *sign, *relation))
        });
        if is_in_names {
            found
                .filter(|(at, ..)| text[..*at].ends_with(char::is_whitespace))
                .max_by_key(|(at, ..)| *at)
        } else {
            found.min_by_key(|(at, sign, _)| (*at, Reverse(sign.len())))
        }
    }

    fn sign_list(&self) -> String {
        let mut signs: Vec<String> =
            self.signs.iter().map(|(sign, _)| format!("`{sign}`")).collect();
        let last = signs.pop().unwrap_or_default();
        if signs.is_empty() { last } else { format!("{} or {last}", signs.join(", ")) }
    }
}

impl<R> Clause<'_, R> {
    pub fn wrong(&mut self, mistake: impl Into<String>) {
        self.mistakes.push(mistake.into());
    }

    /// The figure that the limit is on; absent if there is no such figure, which is noted.
    pub fn figure(&mut self) -> Option<Figure> {
        let found = match self.subject {
            "" => return None,
            VERDICT => Err(format!(
                "`{VERDICT}` has no number; limit it with a threshold, `{VERDICT} <= valid` or `{VERDICT} <= suspect`"
            )),
            name => name.parse(),
        };
        found.map_err(|mistake| self.wrong(mistake)).ok()
    }

    /// The metric of single requests that the limit is on; noted and absent if there is none.
    pub fn metric(&mut self) -> Option<&'static str> {
        let name = self.subject;
        let found = (!name.is_empty()).then(|| objective::timed(name))?;
        found.map_err(|mistake| self.wrong(mistake)).ok()
    }

    /// The number as a value in the figure's unit, which need not be written; of a figure without a
    /// unit, percent too. Where no unit is known, because the figure is not, it only checks that a
    /// number is there.
    pub fn level(&mut self, unit: Option<&str>) -> Option<f64> {
        let Some(unit) = unit else {
            self.any_number();
            return None;
        };
        let level = number(self.number, unit).and_then(|number| match number {
            Number::Bare(value) | Number::Own(value) => Ok(value),
            Number::Percent { share, .. } if unit.is_empty() => Ok(share),
            Number::Percent { .. } => Err(None),
        });
        let expected = Expectation { unit, is_difference: false };
        self.checked(level, expected, |level| *level)
    }

    /// The number as a difference. A time needs its unit there: between milliseconds, seconds and
    /// percent, readers would guess differently.
    pub fn difference(&mut self, unit: Option<&str>) -> Option<Difference> {
        let Some(unit) = unit else {
            self.any_number();
            return None;
        };
        let difference = number(self.number, unit).and_then(|number| match number {
            Number::Percent { percent, .. } => Ok(Difference::Percent(percent)),
            Number::Bare(value) if unit == "ms" && value > 0.0 => {
                Err(Some(format!("write `{value}ms`, `{value}s` or `{value}%`")))
            }
            Number::Bare(value) | Number::Own(value) => Ok(Difference::Absolute(value)),
        });
        let expected = Expectation { unit, is_difference: true };
        self.checked(difference, expected, |difference| match difference {
            Difference::Percent(amount) | Difference::Absolute(amount) => *amount,
        })
    }

    /// The limit that was read, unless there are mistakes in it. Errors: the mistakes.
    pub fn finish<T>(self, limit: Option<T>) -> Result<T, LimitError> {
        match limit {
            Some(limit) if self.mistakes.is_empty() => Ok(limit),
            _ => Err(LimitError { written: self.text.to_owned(), mistakes: self.mistakes }),
        }
    }

    fn checked<T>(
        &mut self,
        read: Result<T, Option<String>>,
        expected: Expectation<'_>,
        amount: impl Fn(&T) -> f64,
    ) -> Option<T> {
        let is_in_range = |amount: f64| match self.numbers {
            Numbers::Any => true,
            Numbers::FromZero => amount >= 0.0,
            Numbers::AboveZero => amount > 0.0,
        };
        let advice = match read {
            Ok(value) if is_in_range(amount(&value)) => return Some(value),
            Ok(_) => None,
            Err(advice) => advice,
        };
        let above = match self.numbers {
            Numbers::AboveZero => " above zero",
            Numbers::Any | Numbers::FromZero => "",
        };
        self.expected(&expected.label(above), advice.as_deref());
        None
    }

    /// Checks a number as far as possible without its figure's unit.
    fn any_number(&mut self) {
        if !self.number.contains(|c: char| c.is_ascii_digit()) {
            self.expected("a number", None);
        }
    }

    fn expected(&mut self, expected: &str, advice: Option<&str>) {
        let found = match self.number {
            "" => "nothing".to_owned(),
            number => format!("`{number}`"),
        };
        let advice = advice.map(|advice| format!("; {advice}"));
        let (sign, advice) = (self.sign, advice.unwrap_or_default());
        let place = match sign {
            "" => String::new(),
            sign if expected.contains(", such as") => format!(", after `{sign}`"),
            sign => format!(" after `{sign}`"),
        };
        self.wrong(format!("expected {expected}{place}, found {found}{advice}"));
    }
}

/// The number that should stand after the sign.
struct Expectation<'u> {
    unit: &'u str,
    is_difference: bool,
}

impl Expectation<'_> {
    fn label(&self, above: &str) -> String {
        match (self.unit, self.is_difference) {
            ("ms" | "s", false) => format!("a time{above}, such as `200ms`"),
            ("ms" | "s", true) => format!("a time or a percentage{above}, such as `20ms` or `5%`"),
            ("", _) => format!("a number or a percentage{above}"),
            (unit, false) => format!("a number of {unit}{above}"),
            (unit, true) => format!("a number of {unit} or a percentage{above}"),
        }
    }
}

enum Number {
    Bare(f64),
    /// A number with the figure's unit or, for a time, any unit of time; in the figure's unit.
    Own(f64),
    Percent {
        percent: f64,
        share: f64,
    },
}

/// A number for a figure with this unit. Errors: the mistake in a time, if there is more to say
/// than that it is none.
fn number(text: &str, unit: &str) -> Result<Number, Option<String>> {
    let finite = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
    if let Some(bare) = finite(text) {
        return Ok(Number::Bare(bare));
    }
    if let Some(percent) = text.strip_suffix('%') {
        let both = finite(percent).zip(number::hundredths(percent)).ok_or(None);
        return both.map(|(percent, share)| Number::Percent { percent, share });
    }
    let own = text.strip_suffix(unit).filter(|_| !unit.is_empty());
    if let Some(own) = own.and_then(finite) {
        return Ok(Number::Own(own));
    }
    let per_second = match unit {
        "ms" => 1000.0,
        "s" => 1.0,
        _ => return Err(None),
    };
    match duration::parse(text) {
        Ok(span) => Ok(Number::Own(span.as_secs_f64() * per_second)),
        Err(ParseError::Empty | ParseError::Number { .. } | ParseError::NoUnit { .. }) => Err(None),
        Err(cause) => {
            let cause = cause.to_string();
            let short = cause.strip_prefix(&format!("`{text}`: "));
            Err(Some(short.unwrap_or(&cause).to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Objective;
    use crate::threshold::Threshold;
    use proptest::prelude::*;

    #[test]
    fn reports_all_mistakes_at_once() {
        let thresholds =
            all::<Threshold>(["tfft.p99 < fast", "ttft.p99 < 1s", "ttft < ", "e2e.p99 =< 1s"]);
        let errors: Vec<String> = thresholds.unwrap_err().into_iter().map(String::from).collect();
        assert_eq!(
            errors,
            [
                "`tfft.p99 < fast`: there is no figure `tfft.p99`; did you mean `ttft.p99`? Besides, expected a number after `<`, found `fast`",
                "`ttft <`: `ttft` needs a statistic, such as `ttft.p99`. Besides, expected a number after `<`, found nothing",
                "`e2e.p99 =< 1s`: write `<=` in place of `=<`",
            ]
        );
        let whole = all::<Objective>(["ttft:1", "e2el:2s"]).unwrap();
        assert_eq!(whole.len(), 2);
    }

    /// A name with a sign in it, as scores may have, is parted where each kind of sign says.
    #[test]
    fn names_may_have_signs_in_them() {
        let parts = |written: Clause<'_, f64>| {
            (written.subject.to_owned(), written.relation, written.number.to_owned())
        };
        let directions = Grammar { signs: DIRECTIONS, numbers: Numbers::FromZero, example: "" };
        let found = directions.read("score.needle -4k 50% - 1 %").ok().map(parts);
        assert_eq!(found, Some(("score.needle -4k 50%".into(), -1.0, "1 %".into())));
        assert!(directions.read("throughput.requests-per-s").is_err());
    }

    proptest! {
        /// The text of a limit that was read is read as the same limit.
        #[test]
        fn whatever_is_written_is_read_or_refused(
            name in "(ttft|e2e|stall-share|output-speed|score)[.](p99|mean|x)|verdict|",
            sign in "<=?|>=?|:|±| ?[+]",
            number in "-?[0-9]{0,3}(ms|s|%|m| tok/s|e3|)",
        ) {
            let text = format!("{name} {sign} {number}");
            if let Ok(threshold) = text.parse::<Threshold>() {
                prop_assert_eq!(threshold.to_string().parse(), Ok(threshold));
            }
            let _ = text.parse::<Objective>();
        }
    }
}
