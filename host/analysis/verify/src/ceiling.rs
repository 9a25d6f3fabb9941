//! The ceiling of a client: the load up to which its times match the server's log.
//!
//! The load grows from level to level. At each level, a fixed number of streams run at the same
//! time. The client's TTFT and gaps are compared with the log by the definitions that the client
//! claims. The processor time for a token is the difference of the times of a level and the first
//! level, over the difference of their tokens: both levels contain the cost of a start.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::FileError;
use crate::card::Outcome;
use crate::case::Case;
use crate::types::Check;

/// The streams of each level.
pub const LEVELS: [u64; 7] = [8, 32, 128, 256, 512, 1024, 2048];

/// The share by which a time may be off.
pub const MOST_OFF: f64 = 0.05;

/// Tokens of an answer.
const TOKENS: u64 = 64;

/// The load up to which a client's times are true.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Ceiling {
    /// The share by which a time may be off.
    pub most_off: f64,
    /// The levels that were tried, in order.
    pub levels: Vec<Level>,
    /// Processor time of the client for a token, in microseconds, at the highest level that it
    /// holds; absent where it holds the first level alone, or the system does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor_us_per_token: Option<f64>,
}

/// A level of load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Level {
    /// Streams at the same time.
    pub streams: u64,
    /// Tokens a second that the server sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_s: Option<f64>,
    /// The share by which the client's TTFT is off: the worst of its statistics. Absent if there is
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft_off: Option<f64>,
    /// The same of its gaps, or of TPOT if it states no gaps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gaps_off: Option<f64>,
    /// Tokens that the server sent.
    pub tokens: u64,
    /// Processor time of the client, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor_s: Option<f64>,
    /// The reason why there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The case of a level. Errors: none for numbers of streams that a case can ask for.
pub fn case(streams: u64) -> Result<Case, FileError> {
    let requests = 2 * streams;
    Case::read(
        &format!("load-ceiling-{streams}.toml"),
        &format!(
            "title = '{streams} streams at the same time'\n\
             why = 'A client that is busy reads late, and calls it the latency of the server.'\n\
             asks = {{ requests = {requests}, concurrency = {streams}, input-len = 16, output-len = {TOKENS} }}\n\
             judges.figures = ['ttft', 'itl', 'tpot']\n\
             tolerance = {{ time = '0s', share = {MOST_OFF} }}\n\
             engine = {{ ttft = '200ms', itl = '20ms' }}\n"
        ),
    )
}

impl Level {
    /// A level: its verdict, the tokens sent and their seconds, and the client's processor time.
    pub fn new(
        streams: u64,
        (outcome, checks): (&Outcome, &[Check]),
        tokens: u64,
        seconds: Option<f64>,
        processor_s: Option<f64>,
    ) -> Self {
        let gaps = off(checks, "itl").or_else(|| off(checks, "tpot"));
        Level {
            streams,
            tokens_per_s: seconds
                .filter(|seconds| *seconds > 0.0)
                .map(|seconds| tokens as f64 / seconds),
            ttft_off: off(checks, "ttft"),
            gaps_off: gaps,
            tokens,
            processor_s,
            failed: match outcome {
                Outcome::Judged(_) => None,
                Outcome::Failed(why) | Outcome::NotApplicable(why) => Some(why.clone()),
            },
        }
    }

    /// The larger of both shares.
    pub fn worst(&self) -> Option<f64> {
        let both = [self.ttft_off, self.gaps_off];
        both.into_iter().flatten().reduce(f64::max)
    }

    /// True if the client's times match the log.
    pub fn holds(&self) -> bool {
        self.failed.is_none() && self.worst().is_some_and(|worst| worst <= MOST_OFF)
    }
}

/// The worst share by which statistics of a quantity are off. A figure with a name of its own, such
/// as `ttft-answer`, does not count: one of the client's figures for a quantity is enough to know
/// whether it reads in time.
fn off(checks: &[Check], quantity: &str) -> Option<f64> {
    let own = checks.iter().filter(|check| {
        let name = check.figure.split_once('.').map_or("", |(name, _)| name);
        name == quantity
    });
    let shares = own.map(|check| match (check.said, check.expected) {
        (Some(own), Some(expected)) if expected > 0.0 => (own - expected).abs() / expected,
        _ => f64::INFINITY,
    });
    shares.reduce(f64::max)
}

impl Ceiling {
    pub fn new(levels: Vec<Level>) -> Self {
        let mut ceiling = Ceiling { most_off: MOST_OFF, levels, processor_us_per_token: None };
        let ends = ceiling.highest().zip(ceiling.levels.first());
        ceiling.processor_us_per_token = ends.and_then(|(highest, first)| {
            let tokens = highest.tokens.checked_sub(first.tokens).filter(|more| *more > 0)?;
            let seconds = highest.processor_s? - first.processor_s?;
            (seconds > 0.0).then_some(seconds * 1e6 / tokens as f64)
        });
        ceiling
    }

    /// The highest level up to which all hold.
    pub fn highest(&self) -> Option<&Level> {
        self.levels.iter().take_while(|level| level.holds()).last()
    }

    pub fn label(&self) -> String {
        let share = self.most_off * 100.0;
        let mut label = match self.highest() {
            None => format!("off by more than {share} % even at the lowest load"),
            Some(highest) => {
                let rate = highest.tokens_per_s.unwrap_or_default();
                let streams = highest.streams;
                let is_last = self.levels.last().is_some_and(Level::holds);
                let beyond = if is_last { ", the highest load that was tried" } else { "" };
                format!(
                    "within {share} % up to {streams} streams, {rate:.0} tokens a second{beyond}"
                )
            }
        };
        if let Some(time) = self.processor_us_per_token {
            label += &format!("; {time:.1} µs of a processor for a token");
        }
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Verdict;

    fn check(figure: &str, own: f64, expected: f64) -> Check {
        let (figure, expected, said) = (figure.to_owned(), Some(expected), Some(own));
        Check { figure, expected, said, ..Check::default() }
    }

    fn level(streams: u64, ttft: f64, processor_s: f64) -> Level {
        let checks = [
            check("ttft.mean", ttft, 200.0),
            check("ttft-answer.mean", 900.0, 200.0),
            check("itl.mean", 20.1, 20.0),
            check("tpot.mean", 99.0, 20.0),
        ];
        let outcome = Outcome::Judged(Verdict::Exact);
        let tokens = 2 * streams * TOKENS;
        Level::new(streams, (&outcome, &checks), tokens, Some(2.0), Some(processor_s))
    }

    #[test]
    fn the_ceiling_is_the_last_level_that_holds() {
        let levels = vec![level(8, 201.0, 2.0), level(32, 209.0, 2.3), level(128, 230.0, 9.0)];
        let ceiling = Ceiling::new(levels.clone());
        assert_eq!(ceiling.highest().unwrap().streams, 32);
        // 0.3 s more for 48 requests of 64 tokens more.
        let time = ceiling.processor_us_per_token.unwrap();
        assert!((time - 0.3e6 / (48.0 * 64.0)).abs() < 1e-6, "{time}");
        let expected =
            "within 5 % up to 32 streams, 2048 tokens a second; 97.7 µs of a processor for a token";
        assert_eq!(ceiling.label(), expected);
        let all = Ceiling::new(levels[..2].to_vec()).label();
        assert!(all.contains("the highest load that was tried"), "{all}");
        let none = Ceiling::new(levels[2..].to_vec()).label();
        assert_eq!(none, "off by more than 5 % even at the lowest load");
    }

    #[test]
    fn a_level_without_figures_does_not_hold() {
        let outcome = Outcome::Judged(Verdict::Exact);
        let none = Level::new(8, (&outcome, &[]), 10, None, None);
        assert!(!none.holds() && none.worst().is_none());
        let failed = Outcome::Failed("no result".to_owned());
        let checks = [check("ttft.mean", 200.0, 200.0)];
        assert!(!Level::new(8, (&failed, &checks), 10, None, None).holds());
    }

    #[test]
    fn every_level_has_a_case() {
        for streams in LEVELS {
            let case = case(streams).unwrap();
            assert_eq!(case.asks.concurrency, Some(streams));
        }
    }
}
