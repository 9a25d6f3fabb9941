//! A strict parser of OpenMetrics' text format: whatever the standard does not allow is an error.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub struct Page {
    pub samples: Vec<Sample>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

#[derive(Default)]
struct Family {
    name: String,
    kind: Option<String>,
    unit: Option<String>,
    help: bool,
    samples: Vec<Sample>,
}

impl Page {
    #[track_caller]
    pub fn read(text: &str) -> Self {
        Page::try_read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn try_read(text: &str) -> Result<Self, String> {
        let body = text.strip_suffix("# EOF\n").ok_or("it does not end with # EOF")?;
        let (mut families, mut page) = (BTreeSet::new(), Page::default());
        let mut family = Family::default();
        for line in body.lines() {
            let Some(comment) = line.strip_prefix("# ") else {
                family.take(sample(line)?)?;
                continue;
            };
            let mut words = comment.splitn(3, ' ');
            let (what, name) = (words.next().unwrap(), words.next().ok_or(line)?);
            let rest = words.next().ok_or_else(|| format!("{line}: no text"))?;
            if name != family.name {
                family.check()?;
                page.samples.append(&mut family.samples);
                if !families.insert(name.to_owned()) {
                    return Err(format!("{name} comes twice"));
                }
                family = Family { name: name.to_owned(), ..Family::default() };
            }
            family.describe(what, rest)?;
        }
        family.check()?;
        page.samples.append(&mut family.samples);
        let mut series = BTreeSet::new();
        for sample in &page.samples {
            if !series.insert((&sample.name, &sample.labels)) {
                return Err(format!("twice: {sample:?}"));
            }
        }
        Ok(page)
    }

    /// The value of the only series with this name and these labels.
    #[track_caller]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let found: Vec<&Sample> = self.series(name, labels).collect();
        assert_eq!(found.len(), 1, "{name} {labels:?}: {found:?}");
        found[0].value
    }

    /// All series with this name and these labels.
    pub fn series<'p>(
        &'p self,
        name: &'p str,
        labels: &'p [(&str, &str)],
    ) -> impl Iterator<Item = &'p Sample> {
        self.samples.iter().filter(move |sample| {
            let has = |(label, value): &(&str, &str)| {
                sample.labels.get(*label).is_some_and(|own| own == value)
            };
            sample.name == name && labels.iter().all(has)
        })
    }

    /// The value of a label that is the same on every series that has it.
    #[track_caller]
    pub fn label(&self, label: &str) -> &str {
        let values: BTreeSet<&String> =
            (self.samples.iter().filter_map(|sample| sample.labels.get(label))).collect();
        assert_eq!(values.len(), 1, "{label}: {values:?}");
        values.first().unwrap()
    }

    /// The counters, which may never decrease.
    pub fn counters(&self) -> impl Iterator<Item = &Sample> {
        let counts = ["_total", "_count", "_bucket", "_sum"];
        (self.samples.iter())
            .filter(move |sample| counts.iter().any(|end| sample.name.ends_with(end)))
    }
}

impl Family {
    fn describe(&mut self, what: &str, text: &str) -> Result<(), String> {
        let name = &self.name;
        if !self.samples.is_empty() {
            return Err(format!("{name}: {what} after its samples"));
        }
        let twice = match what {
            "HELP" => std::mem::replace(&mut self.help, true),
            "TYPE" => self.kind.replace(text.to_owned()).is_some(),
            "UNIT" => self.unit.replace(text.to_owned()).is_some(),
            _ => return Err(format!("{what} is no description")),
        };
        if twice { Err(format!("{name}: {what} twice")) } else { Ok(()) }
    }

    fn take(&mut self, sample: Sample) -> Result<(), String> {
        let kind = self.kind.as_deref().ok_or("a sample before its TYPE")?;
        let ends: &[&str] = match kind {
            "counter" => &["_total"],
            "gauge" => &[""],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => return Err(format!("{kind} is no type")),
        };
        let end = sample.name.strip_prefix(&self.name);
        if !end.is_some_and(|end| ends.contains(&end)) {
            return Err(format!("{} among the samples of {}", sample.name, self.name));
        }
        let sensible = match kind {
            "gauge" => !sample.value.is_nan(),
            "info" => sample.value == 1.0,
            _ => sample.value.is_finite() && sample.value >= 0.0,
        };
        if !sensible {
            return Err(format!("{sample:?}"));
        }
        self.samples.push(sample);
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if self.name.is_empty() && self.samples.is_empty() {
            return Ok(());
        }
        if !self.help || self.kind.is_none() {
            return Err(format!("{} is not described", self.name));
        }
        if let Some(unit) = &self.unit
            && !self.name.ends_with(&format!("_{unit}"))
        {
            return Err(format!("{} does not end with its unit {unit}", self.name));
        }
        if self.kind.as_deref() == Some("histogram") {
            self.check_histogram()?;
        }
        Ok(())
    }

    /// Buckets ascend and add up, and the last equals the total.
    fn check_histogram(&self) -> Result<(), String> {
        let of = |end: &'static str| {
            let name = format!("{}{end}", self.name);
            self.samples.iter().filter(move |sample| sample.name == name)
        };
        for total in of("_count") {
            let (mut bound, mut count) = (f64::NEG_INFINITY, 0.0);
            for bucket in of("_bucket") {
                let mut labels = bucket.labels.clone();
                let le = labels.remove("le").ok_or("a bucket without its bound")?;
                if labels != total.labels {
                    continue;
                }
                let le = match le.as_str() {
                    "+Inf" => f64::INFINITY,
                    le => le.parse().map_err(|_| format!("le={le}"))?,
                };
                if le <= bound || bucket.value < count {
                    return Err(format!("{bucket:?} after {bound}: {count}"));
                }
                (bound, count) = (le, bucket.value);
            }
            let sums = of("_sum").filter(|sum| sum.labels == total.labels).count();
            if (bound, count, sums) != (f64::INFINITY, total.value, 1) {
                return Err(format!("{}: {count} up to {bound}, {total:?}", self.name));
            }
        }
        Ok(())
    }
}

/// `name{label="value",…} 1.5`
fn sample(line: &str) -> Result<Sample, String> {
    let wrong = |what: &str| format!("{what}: {line}");
    let end = line
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .ok_or_else(|| wrong("no value"))?;
    let (name, mut rest) = line.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(wrong("no name"));
    }
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            if !labels.is_empty() {
                rest = rest.strip_prefix(',').ok_or_else(|| wrong("no comma"))?;
            }
            let (label, quoted) = rest.split_once("=\"").ok_or_else(|| wrong("no label"))?;
            let proper = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if label.is_empty() || !label.chars().all(proper) {
                return Err(wrong("a label's name"));
            }
            let (value, after) = unquoted(quoted).ok_or_else(|| wrong("a label's value"))?;
            if labels.insert(label.to_owned(), value).is_some() {
                return Err(wrong("a label twice"));
            }
            rest = after;
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').ok_or_else(|| wrong("no space"))?;
    Ok(Sample {
        name: name.to_owned(),
        labels,
        value: value.parse().map_err(|_| wrong("no number"))?,
    })
}

/// A label's value up to its closing quote, and the rest.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                c @ ('"' | '\\') => c,
                _ => return None,
            }),
            c => value.push(c),
        }
    }
    None
}

/// Tests the parser itself: it rejects invalid text.
#[test]
fn refuses_pages_that_the_standard_forbids() {
    let good = "# HELP a Help.\n# TYPE a counter\na_total{b=\"c\\\"}\\n\"} 1\n# EOF\n";
    let page = Page::read(good);
    assert_eq!(page.label("b"), "c\"}\n");
    assert_eq!(page.value("a_total", &[]), 1.0);
    for (wrong, right) in [
        ("", "# EOF\n"),
        ("a 1", "a_total{b=\"c\\\"}\\n\"} 1"),
        ("a_total 1 ", "a_total{b=\"c\\\"}\\n\"} 1"),
        ("a_total -1", "a_total{b=\"c\\\"}\\n\"} 1"),
        ("a_total{b=\"c\",b=\"d\"} 1", "a_total{b=\"c\\\"}\\n\"} 1"),
        ("a_total 1\na_total 1", "a_total{b=\"c\\\"}\\n\"} 1"),
        ("# TYPE a gauge", "# TYPE a counter"),
        ("# TYPE a counter\n# UNIT a seconds", "# TYPE a counter"),
        ("", "# HELP a Help.\n"),
    ] {
        let text = good.replace(right, wrong);
        assert!(Page::try_read(&text).is_err(), "{text}");
    }
    let histogram = "# HELP h H.\n# TYPE h histogram\nh_sum 3\nh_count 2\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\n# EOF\n";
    Page::read(histogram);
    for (wrong, right) in [
        ("h_count 3", "h_count 2"),
        ("le=\"1\"} 3", "le=\"1\"} 1"),
        ("le=\"7\"", "le=\"+Inf\""),
        ("", "h_sum 3\n"),
    ] {
        let text = histogram.replace(right, wrong);
        assert!(Page::try_read(&text).is_err(), "{text}");
    }
}
