//! The figures of the run as a whole: names, units, better directions, and values.

use super::Better;
use crate::summary::Summary;
use crate::summary::server::Figure;
use ::series::Stage;

pub struct Whole {
    pub name: &'static str,
    pub label: &'static str,
    /// Its unit, or nothing for a share or a number.
    pub unit: &'static str,
    pub better: Better,
    pub(super) value: fn(&Summary) -> Option<f64>,
}

/// The figure of a lab's engine: seconds from the start of its process until it answered.
pub const READY_AFTER: &str = "engine.ready-after-s";
/// The figure of a lab's engine: seconds from the start of its process until its first token.
pub const FIRST_TOKEN_AFTER: &str = "engine.first-token-after-s";

/// Each entry is a name, the label, the unit, the better direction, and the value.
macro_rules! wholes {
    ($($name:expr, $label:literal, $unit:literal, $better:ident, $value:expr;)*) => {
        pub static WHOLE: &[Whole] = &[$(Whole {
            name: $name,
            label: $label,
            unit: $unit,
            better: Better::$better,
            value: $value,
        }),*];
    };
}

wholes! {
    "requests.total", "Requests", "", Neither, |s| Some(s.requests.total as f64);
    "requests.successful", "Successful requests",
        "", Neither, |s| Some(s.requests.successful as f64);
    "requests.failed", "Failed requests", "", Lower, |s| Some(s.requests.failed as f64);
    "requests.success-share", "Success share", "", Higher, |s| s.requests.success_share;
    "tokens.input", "Input tokens", "tokens", Neither, |s| s.tokens.input.total.map(|n| n as f64);
    "tokens.output", "Output tokens",
        "tokens", Neither, |s| s.tokens.output.total.map(|n| n as f64);
    "tokens.output-retokenized", "Output tokens, retokenized",
        "tokens", Neither, |s| s.tokens.output_retokenized.map(|n| n as f64);
    "tokens.acceptance-length", "Acceptance length",
        "tokens/step", Higher, |s| s.tokens.speculation.as_ref()?.acceptance_length;
    "throughput.duration-s", "Duration", "s", Neither, |s| s.throughput.duration_s;
    "throughput.requests-per-s", "Request throughput",
        "req/s", Higher, |s| s.throughput.requests_per_s;
    "throughput.input-tokens-per-s", "Input token throughput",
        "tok/s", Higher, |s| s.throughput.input_tokens_per_s;
    "throughput.output-tokens-per-s", "Output token throughput",
        "tok/s", Higher, |s| s.throughput.output_tokens_per_s;
    "throughput.total-tokens-per-s", "Total token throughput",
        "tok/s", Higher, |s| s.throughput.total_tokens_per_s;
    "throughput.peak-output-tokens-per-s", "Peak output token throughput",
        "tok/s", Neither, |s| s.throughput.peak_output_tokens_per_s;
    "throughput.audio-s-per-s", "Sound in answers, seconds per second",
        "s/s", Higher, |s| s.throughput.audio_s_per_s;
    "throughput.input-audio-s-per-s", "Sound in prompts, seconds per second",
        "s/s", Higher, |s| s.throughput.input_audio_s_per_s;
    "throughput.sent-requests-per-s", "Requests sent",
        "req/s", Neither, |s| s.throughput.sent_requests_per_s;
    "throughput.due-requests-per-s", "Requests due",
        "req/s", Neither, |s| s.throughput.due_requests_per_s;
    "throughput.drain-share", "Share of the duration after the last request was sent",
        "", Neither, |s| s.throughput.drain_share;
    "arrivals.due-gap-cv", "Coefficient of variation of the gaps as due",
        "", Neither, |s| s.arrivals?.due_gap_cv;
    "arrivals.sent-gap-cv", "Coefficient of variation of the gaps as sent",
        "", Neither, |s| s.arrivals?.sent_gap_cv;
    "concurrency.mean", "Concurrency", "", Neither, |s| s.concurrency.mean;
    "concurrency.peak", "Peak concurrent requests",
        "", Neither, |s| s.concurrency.peak.map(|n| n as f64);
    "goodput.requests-per-s", "Request goodput",
        "req/s", Higher, |s| s.goodput.as_ref()?.requests_per_s;
    "goodput.slo-attainment", "SLO attainment", "", Higher, |s| s.goodput.as_ref()?.slo_attainment;
    "goodput.output-tokens-per-s", "Output token goodput",
        "tok/s", Higher, |s| s.goodput.as_ref()?.output_tokens_per_s;
    "sessions.total", "Sessions", "", Neither, |s| Some(s.sessions?.total as f64);
    "sessions.complete", "Complete sessions", "", Neither, |s| Some(s.sessions?.complete as f64);
    "sessions.failed", "Sessions with a failure", "", Lower, |s| Some(s.sessions?.failed as f64);
    "sessions.cut-short", "Sessions cut short", "", Neither, |s| Some(s.sessions?.cut_short as f64);
    "sessions.sessions-per-s", "Session throughput",
        "sessions/s", Higher, |s| s.sessions?.sessions_per_s;
    "sessions.turns-per-s", "Turn throughput", "turns/s", Higher, |s| s.sessions?.turns_per_s;
    "agents.job-latency-s", "Mean job latency", "s", Lower, |s| s.agents?.job_latency_s;
    "agents.jobs-per-h-and-user", "Jobs an hour and a user",
        "jobs/h", Higher, |s| s.agents?.jobs_per_h_and_user;
    "agents.jobs-per-h-and-device", "Jobs an hour and a device",
        "jobs/h", Higher, |s| s.agents?.jobs_per_h_and_device;
    "agents.agents-per-device", "Agents per device", "", Higher, |s| s.agents?.agents_per_device;
    "agents.agents-per-megawatt", "Agents per megawatt",
        "", Higher, |s| s.agents?.agents_per_megawatt;
    // A lab knows them, and no run does.
    READY_AFTER, "Start of the engine until it answered", "s", Lower, |_| None;
    FIRST_TOKEN_AFTER, "Start of the engine until its first token", "s", Lower, |_| None;
    "server.preemptions", "Server preemptions",
        "", Lower, |s| s.server.as_ref()?.counted(Figure::Preemptions);
    "server.stages.queue-ms", "Mean time in the server's queue",
        "ms", Lower, |s| stage(s, Stage::Queue);
    "server.stages.prefill-queue-ms", "Mean time in the queue before prefill",
        "ms", Lower, |s| stage(s, Stage::PrefillQueue);
    "server.stages.prefill-ms", "Mean time of prefill", "ms", Lower, |s| stage(s, Stage::Prefill);
    "server.stages.transfer-ms", "Mean time of the transfer of keys and values",
        "ms", Lower, |s| stage(s, Stage::Transfer);
    "server.stages.decode-queue-ms", "Mean time in the queue before decode",
        "ms", Lower, |s| stage(s, Stage::DecodeQueue);
    "server.stages.first-step-ms", "Mean time of the first step of decode",
        "ms", Lower, |s| stage(s, Stage::FirstStep);
    "devices.energy-j", "Device energy", "J", Lower, |s| s.devices.as_ref()?.energy_j;
    "devices.mean-power-w", "Mean device power", "W", Neither, |s| s.devices.as_ref()?.mean_power_w;
    "devices.max-power-w", "Largest device power",
        "W", Neither, |s| s.devices.as_ref()?.max_power_w;
    "devices.mean-utilization", "Mean device utilisation",
        "", Neither, |s| s.devices.as_ref()?.mean_utilization;
    "devices.max-temperature-c", "Highest device temperature",
        "°C", Neither, |s| s.devices.as_ref()?.max_temperature_c;
    "devices.peak-memory-bytes", "Peak device memory",
        "B", Neither, |s| s.devices.as_ref()?.peak_memory_bytes.map(|n| n as f64);
    "devices.throttled-share", "Largest share of throttled time",
        "", Lower, |s| s.devices.as_ref()?.throttled_share;
    "devices.energy-per-million-output-tokens", "Device energy per million output tokens",
        "J", Lower, |s| s.devices.as_ref()?.energy_per_million_output_tokens;
    "devices.energy-per-million-total-tokens", "Device energy per million tokens",
        "J", Lower, |s| s.devices.as_ref()?.energy_per_million_total_tokens;
    "devices.steady.energy-per-million-output-tokens", "Device energy per million output tokens, steady",
        "J", Lower, |s| s.devices.as_ref()?.steady?.energy_per_million_output_tokens;
    "devices.host.energy-j", "Host energy",
        "J", Lower, |s| s.devices.as_ref()?.host.as_ref()?.energy_j;
    "devices.host.energy-per-million-output-tokens", "Host energy per million output tokens",
        "J", Lower, |s| s.devices.as_ref()?.host.as_ref()?.energy_per_million_output_tokens;
    "devices.host.energy-per-million-total-tokens", "Host energy per million tokens",
        "J", Lower, |s| s.devices.as_ref()?.host.as_ref()?.energy_per_million_total_tokens;
    "cost.total", "Cost", "", Neither, |s| s.cost.as_ref()?.total;
    "cost.per-million-output-tokens", "Cost per million output tokens",
        "", Lower, |s| s.cost.as_ref()?.per_million_output_tokens;
    "cost.per-million-total-tokens", "Cost per million tokens",
        "", Lower, |s| s.cost.as_ref()?.per_million_total_tokens;
}

/// The mean time of a stage before the first token, by the server's series.
fn stage(s: &Summary, stage: Stage) -> Option<f64> {
    s.server_series.as_ref()?.stages.as_ref()?.mean_ms(stage)
}
