//! The flags for how the request rate changes over time, and how requests are spread around it.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;

use super::said;
use model::arrival;
use model::duration::Span;
use reader::Said;
use scenario::{Arrival, Load, SHAPES};

/// How an open loop's load is shaped.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Shape {
    /// Shape of the gamma-distributed gaps: 1 is Poisson, less is burstier, more is more even
    #[arg(
        long,
        value_name = "SHAPE",
        env = "RUNNER_BURSTINESS",
        help_heading = "Load"
    )]
    burstiness: Option<f64>,
    /// Scale random gaps so that the last of n requests is due at n/rate, as vLLM's client does
    #[arg(long, env = "RUNNER_NORMALISE", alias = "normalize", value_parser = FalseyValueParser::new(), help_heading = "Load")]
    normalise: bool,
    /// Change the rate over time: linear or exponential
    ///
    /// The rate is a function of time, and the area under it determines when requests are due.
    /// In vLLM's client, the rate is a function of the request's number.
    #[arg(long, value_name = "SHAPE", env = "RUNNER_RAMP_UP_STRATEGY", value_parser = ramp_shape, help_heading = "Load")]
    ramp_up_strategy: Option<arrival::Shape>,
    /// Requests per second at the start of the ramp
    #[arg(
        long,
        value_name = "RATE",
        env = "RUNNER_RAMP_UP_START_RPS",
        help_heading = "Load"
    )]
    ramp_up_start_rps: Option<f64>,
    /// Requests per second at the end of the ramp and after it
    #[arg(
        long,
        value_name = "RATE",
        env = "RUNNER_RAMP_UP_END_RPS",
        help_heading = "Load"
    )]
    ramp_up_end_rps: Option<f64>,
    /// How long the ramp takes [default: the whole run]
    #[arg(
        long,
        value_name = "TIME",
        env = "RUNNER_RAMP_UP_OVER",
        help_heading = "Load"
    )]
    ramp_up_over: Option<Span>,
    /// Send at the times in a file: JSON lines with a `timestamp` in milliseconds, or numbers of seconds
    #[arg(long, value_name = "FILE", env = "RUNNER_TRACE", help_heading = "Load")]
    trace: Option<PathBuf>,
    /// Send at the times in the dataset's samples; short for --arrival dataset
    #[arg(long, env = "RUNNER_USE_TRACE_TIMESTAMPS", value_parser = FalseyValueParser::new(), conflicts_with = "arrival", help_heading = "Load")]
    use_trace_timestamps: bool,
    /// Play the trace or the dataset this many times as fast
    #[arg(
        long,
        value_name = "FACTOR",
        env = "RUNNER_TIME_SCALE",
        help_heading = "Load"
    )]
    time_scale: Option<f64>,
}

fn ramp_shape(text: &str) -> Result<arrival::Shape, String> {
    let known = SHAPES.into_iter().find(|(name, _)| *name == text);
    known
        .map(|(_, shape)| shape)
        .ok_or_else(|| "expected linear or exponential".to_owned())
}

impl Shape {
    /// Lays the given flags over a scenario's load.
    pub fn lay_on(&self, load: &mut Load) {
        load.burstiness = said("--burstiness", &self.burstiness);
        load.normalise = self.normalise.then(|| Said::flag("--normalise", true));
        load.ramp.shape = said("--ramp-up-strategy", &self.ramp_up_strategy);
        load.ramp.from = said("--ramp-up-start-rps", &self.ramp_up_start_rps);
        load.ramp.to = said("--ramp-up-end-rps", &self.ramp_up_end_rps);
        load.ramp.over = said("--ramp-up-over", &self.ramp_up_over);
        if self.use_trace_timestamps {
            load.arrival = Some(Said::flag("--use-trace-timestamps", Arrival::Dataset));
        }
        load.trace.file = said("--trace", &self.trace);
        load.trace.time_scale = said("--time-scale", &self.time_scale);
    }
}
