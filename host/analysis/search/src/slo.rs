//! Objectives of a search: `ttft.p99 < 500ms`, alone or several together as a tier.
//!
//! An objective states for which share of the requests a metric must stay within a limit: of
//! `ttft.p99 < 500ms`, one request in a hundred may be *bad*. A request is bad if it failed, if it
//! was due and was not sent, or if its metric misses the limit. So a search counts requests and
//! never compares a percentile, whose chance error is large and has no simple distribution.
//!
//! **Each objective of a tier has its own share, and a tier holds where all of them hold.**
//! `ttft.p99 < 500ms` with `tpot.p90 < 50ms` allows one request in a hundred to begin late, and one
//! in ten to go on slowly. MLPerf judges its limits on TTFT and TPOT in this way.
//!
//! **A floor on a speed is a limit on the time per token.** `decode-speed.p25 >= 30` allows one
//! request in four to be slower than 30 tokens per second: `p75` of the time per token is at most
//! 33.3 ms.
//!
//! **Latencies begin when a request is due.** Metrics that begin when a request is sent get the
//! wait before that added. Otherwise a load that this client could not offer would look fast.

use std::fmt;
use std::str::FromStr;

use result::figure::{Figure, Statistic, mirror};
use result::limit::{self, Clause, Grammar, LEVELS, LimitError, Numbers, Relation};
use result::metric::{self, Reading, Single, objective};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tier of objectives that are not given a name.
pub const UNNAMED: &str = "slo";
/// Tiers that a search may have.
pub const MOST_TIERS: usize = 8;
/// Objectives that a tier may have.
pub const MOST_LIMITS: usize = 8;

/// Metrics that begin when the request is sent.
const FROM_SENT: [&str; 12] = [
    metric::TTFT,
    "ttft-any",
    "ttft-reasoning",
    "ttft-answer",
    "ttft-with-connect",
    metric::TTFA,
    metric::E2E,
    "e2e-last-token",
    "e2e-usage",
    "e2e-end",
    "time-to-first-byte",
    "time-to-headers",
];

/// Speeds of a request that a search can limit, in tokens per second.
const SPEEDS: [&str; 2] = [metric::OUTPUT_SPEED, "decode-speed"];

/// One objective: a metric's limit, and the share of the requests that must keep it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
pub struct Limit {
    /// The metric's name.
    pub metric: String,
    /// The share of the requests that must keep it, in percent.
    pub percent: f64,
    /// True if a value equal to the limit misses it.
    pub strict: bool,
    /// The limit, in milliseconds; of a speed, in milliseconds per token.
    pub milliseconds: f64,
    /// The lowest speed, in tokens per second; absent if the metric is a time.
    pub floor: Option<f64>,
}

impl Limit {
    /// The share of the requests that may be bad.
    pub fn allowed(&self) -> f64 {
        allowed(self.percent)
    }

    /// True if a value of the metric, in milliseconds, keeps the limit.
    pub fn keeps(&self, milliseconds: f64) -> bool {
        if self.strict {
            milliseconds < self.milliseconds
        } else {
            milliseconds <= self.milliseconds
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equal = if self.strict { "" } else { "=" };
        let metric = &self.metric;
        match self.floor {
            Some(floor) => {
                let slowest = Statistic::Percentile(mirror(self.percent));
                write!(f, "{metric}.{slowest} >{equal} {floor} tok/s")
            }
            None => {
                let (statistic, limit) = (Statistic::Percentile(self.percent), self.milliseconds);
                write!(f, "{metric}.{statistic} <{equal} {limit} ms")
            }
        }
    }
}

/// Objectives of a search in the grammar of limits: upper limits of times, floors of speeds.
const GRAMMAR: Grammar<Relation> =
    Grammar { signs: LEVELS, numbers: Numbers::AboveZero, example: "`ttft.p99 < 500ms`" };

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let mut written = GRAMMAR.read(text)?;
        let strict = matches!(written.relation, Relation::Below | Relation::Above);
        let figure = written.figure();
        let unit = figure.as_ref().map(Figure::unit);
        let judged = figure.and_then(|figure| judged(&mut written, &figure));
        let level = written.level(unit);
        let limit = judged.zip(level);
        written.finish(limit.map(|((metric, percent), level)| {
            let floor = SPEEDS.contains(&metric).then_some(level);
            Limit {
                metric: metric.to_owned(),
                percent: floor.map_or(percent, |_| mirror(percent)),
                strict,
                milliseconds: floor.map_or(level, |floor| 1000.0 / floor),
                floor,
            }
        }))
    }
}

/// The metric and the percentile by which requests are judged; absent if they cannot be, which is
/// noted.
fn judged(written: &mut Clause<'_, Relation>, figure: &Figure) -> Option<(&'static str, f64)> {
    let Figure::Of(metric, statistic) = figure else {
        written.wrong(format!(
            "`{figure}` is a figure of the whole run, and an objective judges each request; use a metric with a percentile, such as `ttft.p99`"
        ));
        return None;
    };
    let is_floor = matches!(written.relation, Relation::AtLeast | Relation::Above);
    let mistake = match SPEEDS.contains(metric) {
        true => (!is_floor)
            .then(|| format!("a search needs the lowest speed; write `{metric}.p25 >= 30`")),
        false => objective::timed(metric).err().or_else(|| {
            is_floor.then(|| format!("a search needs an upper limit on `{metric}`; write `<=`"))
        }),
    };
    if let Some(mistake) = mistake {
        written.wrong(mistake);
    }
    match *statistic {
        Statistic::Percentile(percent) if allowed(percent) > 0.0 => Some((metric, percent)),
        Statistic::Percentile(_) => {
            written
                .wrong("no number of requests shows that; the highest percentile is p99.9999999");
            None
        }
        statistic => {
            written.wrong(format!(
                "a search counts the requests that miss a limit, so it needs a percentile and not `{statistic}`; use one such as p99"
            ));
            None
        }
    }
}

/// The share of the requests that lies beyond a percentile.
fn allowed(percent: f64) -> f64 {
    // Rounded, because 1 - 0.99 is not 0.01.
    ((100.0 - percent) * 1e7).round() / 1e9
}

impl From<Limit> for String {
    fn from(limit: Limit) -> String {
        limit.to_string()
    }
}

impl TryFrom<String> for Limit {
    type Error = LimitError;

    fn try_from(text: String) -> Result<Self, LimitError> {
        text.parse()
    }
}

/// Objectives that must hold together, by a name.
#[model::apply(model::document!)]
pub struct Tier {
    /// Its name.
    pub name: String,
    /// Its objectives, at least one.
    pub limits: Vec<Limit>,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits: Vec<String> = self.limits.iter().map(Limit::to_string).collect();
        write!(f, "{}: {}", self.name, limits.join("; "))
    }
}

/// The tiers in texts, such as the values of repeated flags: `ttft.p99<500ms` and `tpot.p99<50ms`
/// together are the tier [`UNNAMED`]; `relaxed: ttft.p99<2s; tpot.p99<100ms` is a tier of its own.
/// They keep their order. Errors: every mistake, as text.
pub fn tiers<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<Tier>, Vec<String>> {
    let (mut tiers, mut mistakes): (Vec<Tier>, Vec<String>) = (Vec::new(), Vec::new());
    for text in texts {
        let (name, objectives) = match text.split_once(':') {
            Some((name, objectives)) => (name.trim(), objectives),
            None => (UNNAMED, text),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            mistakes.push(format!(
                "`{}`: a tier's name has letters, digits, - and _, as in `relaxed: ttft.p99 < 2s`",
                text.trim()
            ));
            continue;
        }
        let parts = objectives.split(';').map(str::trim);
        let limits = limit::all::<Limit>(parts.filter(|part| !part.is_empty()));
        let limits = limits.unwrap_or_else(|errors| {
            mistakes.extend(errors.into_iter().map(String::from));
            Vec::new()
        });
        if objectives.split(';').all(|part| part.trim().is_empty()) {
            mistakes.push(format!(
                "`{}`: expected an objective, such as `ttft.p99 < 500ms`",
                text.trim()
            ));
        }
        match tiers.iter_mut().find(|tier| tier.name == name) {
            Some(_) if name != UNNAMED => mistakes.push(format!(
                "the tier `{name}` is given twice; write its objectives together, with `;` between them"
            )),
            Some(tier) => tier.limits.extend(limits),
            None => tiers.push(Tier {
                name: name.to_owned(),
                limits,
            }),
        }
    }
    if tiers.is_empty() && mistakes.is_empty() {
        mistakes.push("expected an objective, such as `ttft.p99 < 500ms`".into());
    }
    if tiers.len() > MOST_TIERS {
        mistakes
            .push(format!("there are {} tiers; a search takes at most {MOST_TIERS}", tiers.len()));
    }
    for tier in &tiers {
        if tier.limits.len() > MOST_LIMITS {
            mistakes.push(format!(
                "the tier `{}` has {} objectives; it takes at most {MOST_LIMITS}",
                tier.name,
                tier.limits.len()
            ));
        }
        for (place, limit) in tier.limits.iter().enumerate() {
            let same =
                |other: &Limit| other.metric == limit.metric && other.percent == limit.percent;
            if tier.limits[..place].iter().any(same) {
                mistakes.push(format!(
                    "the tier `{}` limits {}.{} twice; keep the tighter limit",
                    tier.name,
                    limit.metric,
                    Statistic::Percentile(limit.percent)
                ));
            }
        }
    }
    if mistakes.is_empty() { Ok(tiers) } else { Err(mistakes) }
}

/// The value of a metric of an answered request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Observation {
    /// It took this many milliseconds, from when it was due.
    Took(f64),
    /// It was answered, and the metric is not known of it.
    Unknown,
}

/// A metric as a search reads it.
#[derive(Clone, Copy)]
pub struct Reader {
    /// The metric's name.
    pub metric: &'static str,
    take: Single,
    from_sent: bool,
}

impl Reader {
    /// Finds a metric that a limit names.
    pub fn new(name: &str) -> Option<Self> {
        let (metric, take) = metric::single().find(|(metric, _)| {
            let limited = objective::metrics().chain(SPEEDS).any(|own| own == name);
            metric.name == name && limited
        })?;
        Some(Reader { metric: metric.name, take, from_sent: FROM_SENT.contains(&metric.name) })
    }

    /// Reads the metric of an answered request. One that has a single token keeps every limit on
    /// its further tokens.
    pub fn read(&self, reading: &Reading<'_>) -> Observation {
        let exchange = reading.exchange;
        let waited = exchange.sent.map_or(0.0, |sent| sent.since(exchange.due).as_millis_f64());
        match (self.take)(reading) {
            Some(speed) if self.metric == metric::OUTPUT_SPEED => {
                let tokens = reading.output_tokens.map_or(1, |count| count.tokens.max(1));
                Observation::Took(1000.0 / speed + waited / f64::from(tokens))
            }
            Some(speed) if SPEEDS.contains(&self.metric) => Observation::Took(1000.0 / speed),
            Some(value) if self.from_sent => Observation::Took(value + waited),
            Some(value) => Observation::Took(value),
            None if reading.is_one_token() => Observation::Took(0.0),
            None => Observation::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(text: &str) -> Limit {
        text.parse().unwrap()
    }

    #[test]
    fn objectives_are_read_and_written() {
        for (text, written, allowed) in [
            ("ttft.p99<500ms", "ttft.p99 < 500 ms", 0.01),
            (" tpot.p99.9 <= 50ms", "tpot.p99.9 <= 50 ms", 0.001),
            ("e2e.p95<=10s", "e2e.p95 <= 10000 ms", 0.05),
            ("e2el.median < 1m", "e2e.median < 60000 ms", 0.5),
            ("itl-max.p90 < 0.2s", "itl-max.p90 < 200 ms", 0.1),
            ("output-speed.p25>=30", "output-speed.p25 >= 30 tok/s", 0.25),
            ("decode-speed.p0.1 > 300 tok/s", "decode-speed.p0.1 > 300 tok/s", 0.001),
        ] {
            let read = limit(text);
            assert_eq!(read.to_string(), written);
            assert_eq!(limit(written), read);
            assert_eq!(read.allowed(), allowed, "{text}");
            let json = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<Limit>(&json).unwrap(), read);
        }
        let (below, upto) = (limit("ttft.p99 < 5ms"), limit("ttft.p99 <= 5ms"));
        assert!(!below.keeps(5.0) && upto.keeps(5.0) && below.keeps(4.9) && !upto.keeps(5.1));
        assert!(!upto.keeps(f64::INFINITY));
    }

    #[test]
    fn tiers_are_read_from_flags() {
        let flags =
            ["ttft.p99 < 500ms", "relaxed: ttft.p99<2s; tpot.p99<100ms;", "tpot.p90 < 50ms"];
        let read = tiers(flags).unwrap();
        let written: Vec<String> = read.iter().map(Tier::to_string).collect();
        assert_eq!(
            written,
            [
                "slo: ttft.p99 < 500 ms; tpot.p90 < 50 ms",
                "relaxed: ttft.p99 < 2000 ms; tpot.p99 < 100 ms"
            ]
        );
        let json = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Tier>>(&json).unwrap(), read);
    }

    #[test]
    fn all_mistakes_are_listed_at_once() {
        let flags = [
            "ttft.p99",
            "ttft.mean < 2s",
            "requests.failed < 3",
            "tpot.p99 > 3ms",
            "output-speed.p25 < 30",
            "verdict <= valid",
            "itl.p99 < 3ms",
            "tfft.p99 < 3ms",
            "ttft.p99 < 0ms",
            "ttft.p99.99999999999 < 1ms",
            "a b: ttft.p99 < 3ms",
            "empty: ;",
            "twice: ttft.p99 < 3ms; ttft.p99 < 5ms",
            "twice: e2e.p99 < 3ms",
        ];
        let mistakes = tiers(flags).unwrap_err();
        let wanted = [
            "expected `<=`, `<`, `>=` or `>` between a name and a number",
            "needs a percentile and not `mean`",
            "a figure of the whole run",
            "`tpot.p99 > 3ms`: a search needs an upper limit on `tpot`; write `<=`",
            "`output-speed.p25 < 30`: a search needs the lowest speed; write `output-speed.p25 >= 30`",
            "`verdict` has no number",
            "a request has many values of `itl`",
            "did you mean `ttft.p99`?",
            "a time above zero",
            "no number of requests shows that",
            "a tier's name has",
            "`empty: ;`: expected an objective",
            "`twice` is given twice",
            "limits ttft.p99 twice",
        ];
        assert_eq!(mistakes.len(), wanted.len(), "{mistakes:#?}");
        for (mistake, wanted) in mistakes.iter().zip(wanted) {
            assert!(mistake.contains(wanted), "{mistake}: {wanted}");
        }
        assert!(tiers([]).unwrap_err()[0].contains("ttft.p99 < 500ms"));
        let many: Vec<String> = (0..9).map(|n| format!("t{n}: ttft.p99 < 1s")).collect();
        let error = tiers(many.iter().map(String::as_str)).unwrap_err();
        assert!(error[0].contains("there are 9 tiers"), "{error:?}");
    }

    #[test]
    fn whatever_is_written_is_read_or_refused() {
        let mut random = simulator::Random::new(1);
        let parts: [&[&str]; 6] = [
            &["", "", "a:", "-: ", ":"],
            &["ttft", "e2e", "itl-max", "itl", ""],
            &[".p99", ".p9", ".median", ".p", ".max", ".p99.9"],
            &["<", " <= ", ">", ""],
            &["9", "0", "-1", "1e3", "9.5"],
            &["ms", "s", "", "h", ";", "ms;"],
        ];
        let mut read = 0;
        for round in 0..5000 {
            let text: String = (parts.iter().chain(&parts[1..]))
                .take(if round % 2 == 0 { 6 } else { 11 })
                .map(|part| part[(random.uniform() * 1e6) as usize % part.len()])
                .collect();
            if let Ok(tiers) = tiers([text.as_str()]) {
                let written: Vec<String> = tiers.iter().map(Tier::to_string).collect();
                let again = super::tiers(written.iter().map(String::as_str));
                assert_eq!(again, Ok(tiers), "{text}");
                read += 1;
            }
        }
        assert!(read > 100, "{read}");
    }

    /// The metrics that begin when a request is sent match the list, by the definitions of the
    /// catalogue.
    #[test]
    fn metrics_that_begin_with_sending_are_known() {
        for name in objective::metrics() {
            let (metric, _) = metric::single().find(|(own, _)| own.name == name).unwrap();
            let defined = metric.definition;
            let begins = match name {
                "time-to-first-byte" | "time-to-headers" => true,
                _ if name.ends_with("from-due") => false,
                _ => {
                    metric.of == metric::Of::Answered
                        && (defined.ends_with("- sent")
                            || defined.contains("- sent;")
                            || defined.starts_with("as ttft, but - start"))
                }
            };
            assert_eq!(FROM_SENT.contains(&name), begins, "{name}: {}", metric.definition);
            assert!(Reader::new(name).is_some(), "{name}");
        }
        assert!(Reader::new("itl").is_none() && Reader::new("output-tokens").is_none());
    }
}
