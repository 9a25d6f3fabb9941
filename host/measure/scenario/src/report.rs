//! `[report]`, `[goodput]` and `[thresholds]`: the reported figures, and the limits of the run.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use serde::Serialize;
use serde_json::Value;

use crate::Fate::Silent;
use crate::field::{self, Entry, Field, Maybe, Value as _, below};
use crate::key::{Key, heading::RESULT, plan};
use crate::table::table;
use model::duration::{self, Span};
use reader::{Config, ConfigTable, ConfigValue, Located, Reader, toml_text};
use result::limit::LimitError;
use result::metric;
use result::metric::objective::{self, Objective};
use result::prefix::PAGE;
use result::threshold::Threshold;

table! {
    /// `[report]`: the reported figures.
    pub struct Report {
        /// Percentiles to report, each above 0 and at most 100; the flag takes them as in
        /// 50,90,99.9.
        percentiles: Maybe<Vec<Located<f64>>> = usual_percentiles() => plan("percentiles", Silent)
            .flag("metric-percentiles", "LIST", RESULT)
            .delimiter(',');
        /// Include requests that failed or were not sent in means and percentiles, as infinitely
        /// late.
        ///
        /// A percentile that falls among them is infinite, and the mean is left out.
        failures_as_infinite: Maybe<bool> = false
            => plan("failures-as-infinite", Silent).switch("failures-as-infinite", RESULT);
        /// Report figures by time slices of this length too, such as 10s: requests, tokens and
        /// latencies.
        ///
        /// A run has at most 1000 slices; where this length needs more, they are a multiple of it.
        slice: Maybe<Span>
            => plan("time-slice", Silent).flag("slice", "TIME", RESULT);
        /// Compare the results with the server's own metrics.
        server_metrics: Maybe<bool> = false
            => plan("control.server-metrics", Silent).switch("server-metrics", RESULT);
        /// Time from one reading of the server's metrics page to the next, from 100ms to 1m, or
        /// none.
        ///
        /// Every series of the page is kept with its labels. A server without such a page fails no
        /// run.
        server_series: Maybe<ServerSeries>
            => plan("control.server-series", Silent)
                .flag("server-series", "TIME", RESULT)
                .otherwise("1s with `report.server-metrics` or `target.metrics-url`, else none");
        /// Compare the prompt tokens that the server found in its prefix cache with the tokens that
        /// repeat within the run.
        ///
        /// Prompts are kept in a file without a name while they are sent, and tokenized after the
        /// load.
        cache: Maybe<bool> = false
            => plan("control.cache-report", Silent).switch("cache-report", RESULT);
        /// Tokens per page of the prefix cache, as the engine has it (`--block-size`,
        /// `--page-size`).
        ///
        /// A cache finds whole pages only, so the size decides how much of a prompt repeats.
        page_size: Maybe<u64> = u64::from(PAGE.get())
            => plan("control.page-size", Silent).flag("page-size", "TOKENS", RESULT);
    }
}

/// The shortest and the longest time between two readings of a metrics page: it costs a server a
/// few milliseconds to write one.
const READINGS: std::ops::RangeInclusive<std::time::Duration> =
    std::time::Duration::from_millis(100)..=std::time::Duration::from_secs(60);

/// The interval at which a server's metrics page is read during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerSeries {
    None,
    Every(Span),
}

impl ServerSeries {
    /// The interval where the scenario asks for the server's metrics without one.
    pub const USUAL: Span = Span(std::time::Duration::from_secs(1));
}

impl fmt::Display for ServerSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerSeries::None => f.write_str("none"),
            ServerSeries::Every(span) => f.write_str(&duration::format(span.0)),
        }
    }
}

impl Serialize for ServerSeries {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl field::Value for ServerSeries {
    fn expected() -> String {
        "\"none\", or a duration from 100ms to 1m".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(ServerSeries::None);
        }
        let span = <Span as field::Value>::parse(text).ok();
        span.filter(|span| READINGS.contains(&span.0))
            .map(ServerSeries::Every)
            .ok_or_else(|| format!("expected {}", Self::expected()))
    }
}

fn usual_percentiles() -> Vec<Located<f64>> {
    let usual = [90.0, 95.0, 99.0].into_iter();
    usual.map(|percent| Located::flag("default", percent)).collect()
}

/// `[goodput]`: SLOs, the upper limits of request metrics in milliseconds, by the names of the
/// metrics.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Goodput(BTreeMap<String, Located<f64>>);

impl Deref for Goodput {
    type Target = BTreeMap<String, Located<f64>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Joins the faults of several limits into one message.
fn together(errors: Vec<LimitError>) -> String {
    let errors: Vec<String> = errors.into_iter().map(String::from).collect();
    errors.join("; ")
}

impl Field for Goodput {
    type Value = Goodput;

    fn declare(mut key: Key, keys: &mut Vec<Key>) {
        key.path = below(&key.path, "METRIC");
        key.expected = "a time such as \"200ms\", or a number of milliseconds".to_owned();
        key.many = true;
        key.check = Some(|text| objective::parse(text).map(drop).map_err(together));
        keys.push(key);
    }

    /// Objectives by their metrics' names here or in `vllm bench serve`.
    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Self {
        t.table(key, |t| {
            let ours = objective::metrics().map(|name| (name, name));
            // ITL is included, so that a message explains why it is not supported.
            Goodput(
                ours.chain(metric::ALIASES)
                    .chain([(metric::ITL, metric::ITL)])
                    .filter_map(|(key, name)| Some((name.to_owned(), t.milliseconds(key)?)))
                    .collect(),
            )
        })
    }

    fn merged(mut self, over: Self) -> Self {
        self.0.extend(over.0);
        self
    }

    fn say(&mut self, _: &[&str], flag: &str, texts: &[String]) -> Result<(), String> {
        for text in texts {
            let objectives =
                objective::parse(text).map_err(|errors| format!("{flag}: {}", together(errors)))?;
            for Objective { metric, at_most_ms } in objectives {
                self.0.insert(metric, Located::flag(flag, at_most_ms));
            }
        }
        Ok(())
    }

    fn entries(&self, path: &str, entries: &mut Vec<Entry>) {
        entries.extend(
            self.0.iter().map(|(metric, most)| {
                Entry::new(below(path, metric), most.value.toml(), &most.place)
            }),
        );
    }
}

/// `[thresholds]`: conditions on the run, such as `ttft.p99 <= 200ms`; see [`result::threshold`].
#[derive(Clone, Debug, Default, Serialize)]
pub struct Thresholds(Vec<Located<String>>);

impl Deref for Thresholds {
    type Target = [Located<String>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Field for Thresholds {
    type Value = Thresholds;

    fn declare(mut key: Key, keys: &mut Vec<Key>) {
        key.path = below(&key.path, "FIGURE");
        key.expected = "a condition such as \"<= 200ms\", or a list of several".to_owned();
        key.many = true;
        keys.push(key);
    }

    /// Thresholds by the figures they are on: `ttft.p99 = "<= 200ms"`, or a list of several.
    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Self {
        let mut found = Thresholds::default();
        found.gather_all("", &t.config(key));
        found
    }

    /// The thresholds of both. A threshold of `over` replaces thresholds on the same figure.
    fn merged(self, over: Self) -> Self {
        let subject = |located: &Located<String>| {
            let threshold = located.value.parse::<Threshold>().ok();
            threshold.map(|threshold| threshold.subject())
        };
        let replaced: Vec<_> = over.iter().filter_map(subject).collect();
        let kept = self
            .0
            .into_iter()
            .filter(|located| subject(located).is_none_or(|own| !replaced.contains(&own)));
        Thresholds(kept.chain(over.0).collect())
    }

    fn say(&mut self, _: &[&str], flag: &str, texts: &[String]) -> Result<(), String> {
        let texts = texts.iter();
        self.0.extend(texts.map(|text| Located::flag(flag, text.clone())));
        Ok(())
    }

    fn entries(&self, path: &str, entries: &mut Vec<Entry>) {
        let parts = |located: &Located<String>| {
            let (figure, condition) = located.value.split_once(' ').unwrap_or((&located.value, ""));
            (below(path, figure), toml_text::string(condition))
        };
        let mut done = Vec::new();
        for located in &self.0 {
            let (path, _) = parts(located);
            if done.contains(&path) {
                continue;
            }
            let all = self.0.iter().map(parts);
            let own: Vec<String> =
                all.filter_map(|(other, condition)| (other == path).then_some(condition)).collect();
            let value = match own.as_slice() {
                [only] => only.clone(),
                several => format!("[{}]", several.join(", ")),
            };
            entries.push(Entry::new(path.clone(), value, &located.place));
            done.push(path);
        }
    }
}

fn is_difference(entry: &Located<String>) -> bool {
    matches!(entry.value.parse(), Ok(Threshold::Difference(..)))
}

impl Thresholds {
    /// Its limits on the difference of two sides.
    pub fn differences(&self) -> impl Iterator<Item = &Located<String>> {
        self.0.iter().filter(|entry| is_difference(entry))
    }

    pub fn take_differences(&mut self) -> Vec<Threshold> {
        let taken = self.differences().filter_map(|entry| entry.value.parse().ok()).collect();
        self.0.retain(|entry| !is_difference(entry));
        taken
    }

    fn gather_all(&mut self, path: &str, table: &ConfigTable) {
        for entry in table.iter() {
            self.gather(&below(path, &entry.key.value), &entry.value);
        }
    }

    fn gather(&mut self, figure: &str, value: &ConfigValue) {
        let condition = match &value.value {
            Config::Table(table) => return self.gather_all(figure, table),
            Config::List(several) => {
                return several.iter().for_each(|one| self.gather(figure, one));
            }
            Config::Scalar(Value::String(condition)) => condition.clone(),
            Config::Scalar(other) => other.to_string(),
        };
        let threshold = format!("{figure} {condition}");
        self.0.push(Located::new(threshold, value.place.clone()));
    }
}
