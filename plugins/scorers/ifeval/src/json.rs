//! Test for JSON by Python's `json.loads`: `NaN`, `Infinity` and `-Infinity` are JSON, numbers have
//! any size, and unpaired surrogates may be escaped.

/// Deepest nesting of values. Python ends with an error a little beyond it.
const DEEPEST: usize = 990;
/// The most digits of a whole number that Python reads.
const DIGITS: usize = 4300;

pub fn is_json(text: &str) -> bool {
    let mut reader = Reader { rest: text.as_bytes() };
    reader.space();
    reader.value(0).is_some() && {
        reader.space();
        reader.rest.is_empty()
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

/// A part that was read; `None` if it is not there.
type Read = Option<()>;

impl Reader<'_> {
    fn space(&mut self) {
        while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    fn take(&mut self, text: &str) -> Read {
        self.rest = self.rest.strip_prefix(text.as_bytes())?;
        Some(())
    }

    fn value(&mut self, depth: usize) -> Read {
        if depth > DEEPEST {
            return None;
        }
        match self.rest.first()? {
            b'{' => self.list(depth, "{", "}", true),
            b'[' => self.list(depth, "[", "]", false),
            b'"' => self.text(),
            b'-' | b'0'..=b'9' => self.take("-Infinity").or_else(|| self.number()),
            _ => {
                ["true", "false", "null", "NaN", "Infinity"].iter().find_map(|word| self.take(word))
            }
        }
    }

    fn list(&mut self, depth: usize, opens: &str, closes: &str, has_keys: bool) -> Read {
        self.take(opens)?;
        self.space();
        if self.take(closes).is_some() {
            return Some(());
        }
        loop {
            if has_keys {
                self.text()?;
                self.space();
                self.take(":")?;
                self.space();
            }
            self.value(depth + 1)?;
            self.space();
            if self.take(closes).is_some() {
                return Some(());
            }
            self.take(",")?;
            self.space();
        }
    }

    fn text(&mut self) -> Read {
        self.take("\"")?;
        loop {
            let (first, rest) = self.rest.split_first()?;
            self.rest = rest;
            match first {
                b'"' => return Some(()),
                b'\\' => self.escape()?,
                0..0x20 => return None,
                _ => {}
            }
        }
    }

    fn escape(&mut self) -> Read {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        match first {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let (digits, rest) = self.rest.split_at_checked(4)?;
                self.rest = rest;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Read {
        let _ = self.take("-");
        let whole = match self.rest.first()? {
            b'0' => {
                self.take("0")?;
                1
            }
            _ => self.digits()?,
        };
        let before = self.rest.len();
        // A point or a power without digits ends the number before it.
        let mark = self.rest;
        if self.take(".").is_none() || self.digits().is_none() {
            self.rest = mark;
        }
        let mark = self.rest;
        if self.take("e").or_else(|| self.take("E")).is_some() {
            let _ = self.take("+").or_else(|| self.take("-"));
            if self.digits().is_none() {
                self.rest = mark;
            }
        }
        let is_whole = self.rest.len() == before;
        (!is_whole || whole <= DIGITS).then_some(())
    }

    /// Passes over one or more digits; returns their number.
    fn digits(&mut self) -> Option<usize> {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.rest = &self.rest[count..];
        (count > 0).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::is_json;

    #[test]
    fn json_is_read_as_python_reads_it() {
        for good in [
            "{}",
            " [1, -2.5e3, 0, -0.0] \n",
            "NaN",
            "[-Infinity]",
            r#"{"a": {"b": null}, "a": true}"#,
            "\"é\u{7f}\"",
            r#""\ud83d""#,
            "1e999",
            "\"\\u00e9\\n\"",
        ] {
            assert!(is_json(good), "{good}");
        }
        for bad in [
            "",
            "{",
            "[1,]",
            "{'a': 1}",
            "01",
            "1.",
            "-",
            "+1",
            "\u{feff}1",
            "nul",
            "\"\t\"",
            "\"\\x\"",
            "1 2",
            "{1: 2}",
            "\"\\u12g4\"",
            "\u{a0}1",
            ".5",
            "1e",
            "\"a",
        ] {
            assert!(!is_json(bad), "{bad}");
        }
    }

    #[test]
    fn depth_and_digits_are_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_json(&nested(900)));
        assert!(!is_json(&nested(100_000)));
        assert!(is_json(&"1".repeat(4300)));
        assert!(!is_json(&"1".repeat(4301)));
        assert!(is_json(&format!("{}.0", "1".repeat(5000))));
    }
}
