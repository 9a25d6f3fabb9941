//! Finds where a scenario sets something, by the path of its keys.

use super::{Plugin, Scenario, Stage};
use reader::{Place, Said};

fn at<T>(said: &Option<Said<T>>) -> Option<&Place> {
    said.as_ref().map(|said| &said.place)
}

impl Scenario {
    /// The place that sets the value at the path; see [`Scenario::span_of`].
    pub fn place_of(&self, path: &[&str]) -> Option<&Place> {
        match path {
            ["name"] => at(&self.name),
            ["order"] => at(&self.order),
            ["about", within @ ..] if !within.is_empty() => self.about.place_of(within),
            ["target", "base-url"] => at(&self.target.base_url),
            ["target", "model"] => at(&self.target.model),
            ["target", "api-key-env"] => at(&self.target.api_key_env),
            ["target", "wait-ready"] => at(&self.target.wait_ready),
            ["target", "headers", name] => {
                Some(&self.target.headers.get(&name.to_ascii_lowercase())?.place)
            }
            ["tokenizer", "path"] => at(&self.tokenizer.path),
            ["backend", within @ ..] if !within.is_empty() => {
                place_in_plugin(&self.backend, within)
            }
            ["dataset", "plugin"] => at(&self.dataset.plugin),
            ["dataset", "config", within @ ..] => self.dataset.config.place_of(within),
            ["dataset", "files", name] => Some(&self.dataset.files.get(*name)?.place),
            ["load", "requests"] => at(&self.load.requests),
            ["load", "duration"] => at(&self.load.duration),
            ["load", "arrival"] => at(&self.load.arrival),
            ["load", "rate"] => at(&self.load.rate),
            ["load", "burstiness"] => at(&self.load.burstiness),
            ["load", "normalise"] => at(&self.load.normalise),
            ["load", "ramp", "shape"] => at(&self.load.ramp.shape),
            ["load", "ramp", "from"] => at(&self.load.ramp.from),
            ["load", "ramp", "to"] => at(&self.load.ramp.to),
            ["load", "ramp", "over"] => at(&self.load.ramp.over),
            ["load", "stages", index, within @ ..] => {
                let index: usize = index.parse().ok()?;
                place_in_stage(self.load.stages.as_ref()?.get(index)?, within)
            }
            ["load", "trace", "file"] => at(&self.load.trace.file),
            ["load", "trace", "time-scale"] => at(&self.load.trace.time_scale),
            ["load", "concurrency"] => at(&self.load.concurrency),
            ["load", "think-time"] => at(&self.load.think_time),
            ["load", "think-spread"] => at(&self.load.think_spread),
            ["load", "max-in-flight"] => at(&self.load.max_in_flight),
            ["load", "warmup"] => at(&self.load.warmup),
            ["load", "flush-cache"] => at(&self.load.flush_cache),
            ["load", "seed"] => at(&self.load.seed),
            ["request", key, within @ ..] => self.request.place_of(key, within),
            ["connection", "http"] => at(&self.connection.http),
            ["connection", "reuse"] => at(&self.connection.reuse),
            ["connection", "ca-cert"] => at(&self.connection.ca_cert),
            ["connection", "insecure"] => at(&self.connection.insecure),
            ["connection", "timestamps"] => at(&self.connection.timestamps),
            ["timeouts", "connect"] => at(&self.timeouts.connect),
            ["timeouts", "first-token"] => at(&self.timeouts.first_token),
            ["timeouts", "token-gap"] => at(&self.timeouts.token_gap),
            ["timeouts", "request"] => at(&self.timeouts.request),
            ["scorers", index, within @ ..] => {
                let index: usize = index.parse().ok()?;
                place_in_plugin(self.scorers.as_ref()?.get(index)?, within)
            }
            ["report", "percentiles"] => at(&self.report.percentiles),
            ["report", "percentiles", index] => {
                let index: usize = index.parse().ok()?;
                Some(&self.report.percentiles.as_ref()?.value.get(index)?.place)
            }
            ["report", "server-metrics"] => at(&self.report.server_metrics),
            ["goodput", metric] => Some(&self.goodput.get(*metric)?.place),
            ["sandbox", "component"] => at(&self.sandbox.component),
            ["sandbox", "functions"] => at(&self.sandbox.functions),
            ["sandbox", "table"] => at(&self.sandbox.table),
            ["sandbox", "nesting"] => at(&self.sandbox.nesting),
            ["sandbox", "compile"] => at(&self.sandbox.compile),
            ["sandbox", "memory"] => at(&self.sandbox.memory),
            ["sandbox", "backend-call"] => at(&self.sandbox.backend_call),
            ["sandbox", "dataset-call"] => at(&self.sandbox.dataset_call),
            ["sandbox", "scorer-call"] => at(&self.sandbox.scorer_call),
            ["sandbox", "returned"] => at(&self.sandbox.returned),
            path => self.sections.get(&path.join(".")),
        }
    }
}

fn place_in_plugin<'a>(plugin: &'a Plugin, within: &[&str]) -> Option<&'a Place> {
    match within {
        ["plugin"] => at(&plugin.plugin),
        ["config", within @ ..] => plugin.config.place_of(within),
        _ => None,
    }
}

fn place_in_stage<'a>(stage: &'a Stage, within: &[&str]) -> Option<&'a Place> {
    match within {
        [] => Some(&stage.place),
        ["rate"] => at(&stage.rate),
        ["from"] => at(&stage.from),
        ["to"] => at(&stage.to),
        ["shape"] => at(&stage.shape),
        ["for"] => at(&stage.length),
        _ => None,
    }
}
