//! Conditions on options: `max-num-seqs >= 128 && quantization != 'none'`.
//!
//! A comparison has a name on its left and a constant on its right: a number, a text in quotes,
//! `true` or `false`. Comparisons are joined by `&&`, `||`, `!` and parentheses. An option that is
//! absent makes every comparison with it false, `!=` too.

use std::cmp::Ordering;

use serde_json::Value;

use crate::value::is_same;

/// The deepest nesting of parentheses and `!`.
const DEEPEST: usize = 50;

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A name is compared with a constant.
    Compare(String, Sign, Value),
    /// It does not hold.
    Not(Box<Expr>),
    /// Both hold.
    And(Box<Expr>, Box<Expr>),
    /// At least one holds.
    Or(Box<Expr>, Box<Expr>),
}

/// The sign of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<=`
    AtMost,
    /// `>=`
    AtLeast,
    /// `<`
    Below,
    /// `>`
    Above,
}

/// Signs as written, two-character ones first.
const SIGNS: [(&str, Sign); 6] = [
    ("==", Sign::Equal),
    ("!=", Sign::Unequal),
    ("<=", Sign::AtMost),
    (">=", Sign::AtLeast),
    ("<", Sign::Below),
    (">", Sign::Above),
];

impl Sign {
    fn holds(self, value: &Value, constant: &Value) -> bool {
        let order = match (value, constant) {
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            (a, b) => a.as_f64().zip(b.as_f64()).and_then(|(a, b)| a.partial_cmp(&b)),
        };
        match self {
            Sign::Equal => is_same(value, constant),
            Sign::Unequal => !is_same(value, constant),
            Sign::AtMost => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Sign::AtLeast => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            Sign::Below => order == Some(Ordering::Less),
            Sign::Above => order == Some(Ordering::Greater),
        }
    }
}

impl Expr {
    /// Reads a condition.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { rest: text, deep: 0 };
        let expr = parser.any()?;
        match parser.ahead() {
            "" => Ok(expr),
            rest => Err(format!("`{rest}` is left over; join comparisons with && or ||")),
        }
    }

    /// True if it holds for these values.
    pub fn holds<'v>(&self, value: &impl Fn(&str) -> Option<&'v Value>) -> bool {
        match self {
            Expr::Compare(name, sign, constant) => {
                value(name).is_some_and(|value| sign.holds(value, constant))
            }
            Expr::Not(one) => !one.holds(value),
            Expr::And(a, b) => a.holds(value) && b.holds(value),
            Expr::Or(a, b) => a.holds(value) || b.holds(value),
        }
    }

    /// Every comparison in it: the name and the constant.
    pub fn comparisons(&self) -> Vec<(&str, &Value)> {
        match self {
            Expr::Compare(name, _, constant) => vec![(name, constant)],
            Expr::Not(one) => one.comparisons(),
            Expr::And(a, b) | Expr::Or(a, b) => {
                let mut all = a.comparisons();
                all.extend(b.comparisons());
                all
            }
        }
    }
}

struct Parser<'t> {
    rest: &'t str,
    deep: usize,
}

impl<'t> Parser<'t> {
    fn ahead(&mut self) -> &'t str {
        self.rest = self.rest.trim_start();
        self.rest
    }

    fn takes(&mut self, sign: &str) -> bool {
        let rest = self.ahead().strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn any(&mut self) -> Result<Expr, String> {
        let mut expr = self.every()?;
        while self.takes("||") {
            expr = Expr::Or(Box::new(expr), Box::new(self.every()?));
        }
        Ok(expr)
    }

    fn every(&mut self) -> Result<Expr, String> {
        let mut expr = self.one()?;
        while self.takes("&&") {
            expr = Expr::And(Box::new(expr), Box::new(self.one()?));
        }
        Ok(expr)
    }

    fn one(&mut self) -> Result<Expr, String> {
        self.deep += 1;
        if self.deep > DEEPEST {
            return Err(format!("it is nested more than {DEEPEST} deep"));
        }
        let expr = if self.takes("!") {
            Expr::Not(Box::new(self.one()?))
        } else if self.takes("(") {
            let expr = self.any()?;
            if !self.takes(")") {
                return Err("a `)` is missing".to_owned());
            }
            expr
        } else {
            self.comparison()?
        };
        self.deep -= 1;
        Ok(expr)
    }

    fn comparison(&mut self) -> Result<Expr, String> {
        let text = self.ahead();
        let of_name = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        let end = text.find(|c| !of_name(c)).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        self.rest = rest;
        if name.is_empty() {
            return Err(match text {
                "" => "an option's name is missing at its end".to_owned(),
                text => format!("expected an option's name at `{text}`"),
            });
        }
        let found = SIGNS.into_iter().find(|(sign, _)| self.takes(sign));
        let Some((_, sign)) = found else {
            return Err(format!("expected one of == != <= >= < > after `{name}`"));
        };
        Ok(Expr::Compare(name.to_owned(), sign, self.constant()?))
    }

    fn constant(&mut self) -> Result<Value, String> {
        let text = self.ahead();
        if let Some(quote) = text.chars().next().filter(|c| "'\"".contains(*c)) {
            let inner = &text[1..];
            let end = inner
                .find(quote)
                .ok_or_else(|| format!("a text in quotes does not end: `{text}`"))?;
            self.rest = &inner[end + 1..];
            return Ok(inner[..end].into());
        }
        let ends = |c: char| c.is_whitespace() || "()&|!".contains(c);
        let (word, rest) = text.split_at(text.find(ends).unwrap_or(text.len()));
        self.rest = rest;
        match word {
            "" => Err("a value is missing".to_owned()),
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            word => {
                let number = serde_json::from_str::<serde_json::Number>(word);
                let wrong = |_| {
                    format!(
                        "expected a number, `true`, `false` or a text in quotes, found `{word}`"
                    )
                };
                number.map(Value::Number).map_err(wrong)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_hold_of_what_they_say() {
        let options = json!({"seqs": 256, "quant": "fp8", "share": 0.9, "eager": true});
        let holds = |text: &str| {
            let expr = Expr::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            expr.holds(&|name| options.get(name))
        };
        for (text, wanted) in [
            ("seqs >= 128", true),
            ("seqs==256.0", true),
            ("seqs < 256 || quant == 'fp8'", true),
            ("seqs < 256 || quant == 'fp8' && eager == false", false),
            ("(seqs < 256 || quant == \"fp8\") && !(eager == false)", true),
            ("share>0.5&&share<1", true),
            ("quant > 'a'", true),
            ("quant == 8", false),
            ("none == 1", false),
            ("none != 1", false),
            ("!(none == 1)", true),
        ] {
            assert_eq!(holds(text), wanted, "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("", "an option's name is missing"),
            ("seqs", "expected one of == != <= >= < > after `seqs`"),
            ("seqs = 1", "expected one of =="),
            ("seqs == ", "a value is missing"),
            ("seqs == fp8", "found `fp8`"),
            ("seqs == 'fp8", "does not end"),
            ("(seqs == 1", "a `)` is missing"),
            ("seqs == 1 2", "`2` is left over"),
            ("seqs == 1 and x == 2", "`and x == 2` is left over"),
        ] {
            let error = Expr::parse(text).expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
        let deep = format!("{}a == 1", "!".repeat(1000));
        assert!(Expr::parse(&deep).unwrap_err().contains("nested"));
    }
}
