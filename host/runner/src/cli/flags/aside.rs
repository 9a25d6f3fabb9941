//! The flags for what the server is asked in addition to the measured requests.

use std::time::Duration;

use clap::builder::FalseyValueParser;

use super::said;
use model::duration::{self, Span};
use reader::Said;
use scenario::Scenario;

/// Questions in addition to the measurement.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Aside {
    /// How long to wait, in seconds, for a server that is not ready yet [default: not at all]
    #[arg(long, value_name = "SECONDS", env = "RUNNER_READY_CHECK_TIMEOUT_SEC", value_parser = seconds, help_heading = "Target")]
    ready_check_timeout_sec: Option<Span>,
    /// Make the server clear its prefix cache between the warmup and the measurement
    #[arg(long, env = "RUNNER_FLUSH_CACHE", value_parser = FalseyValueParser::new(), help_heading = "Load")]
    flush_cache: bool,
    /// Compare the results with the server's own metrics
    #[arg(long, env = "RUNNER_SERVER_METRICS", value_parser = FalseyValueParser::new(), help_heading = "Result")]
    server_metrics: bool,
}

/// Seconds, or a time with its unit.
fn seconds(text: &str) -> Result<Span, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds)
            .map(Span)
            .map_err(|_| "expected a number of seconds, such as 600".to_owned());
    }
    duration::parse(text)
        .map(Span)
        .map_err(|error| error.to_string())
}

impl Aside {
    /// Lays the given flags over a scenario.
    pub fn lay_on(&self, scenario: &mut Scenario) {
        scenario.target.wait_ready =
            said("--ready-check-timeout-sec", &self.ready_check_timeout_sec);
        let flag = |given: bool, name: &str| given.then(|| Said::flag(name, true));
        scenario.load.flush_cache = flag(self.flush_cache, "--flush-cache");
        scenario.report.server_metrics = flag(self.server_metrics, "--server-metrics");
    }
}
