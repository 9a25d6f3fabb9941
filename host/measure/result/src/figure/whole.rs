//! The figures of the run as a whole: their names, units, and the direction in which they are
//! better.

use super::Better;
use super::Better::{Higher, Lower, Neither};

/// A figure of the run as a whole.
pub struct Whole {
    pub name: &'static str,
    /// The name that people use.
    pub label: &'static str,
    /// Its unit, or nothing for a share or a number.
    pub unit: &'static str,
    pub better: Better,
}

/// The figure of a lab's engine: seconds from the start of its process until it answered.
pub const READY_AFTER: &str = "engine.ready-after-s";
/// The figure of a lab's engine: seconds from the start of its process until its first token.
pub const FIRST_TOKEN_AFTER: &str = "engine.first-token-after-s";

/// Every figure of the run as a whole.
pub static WHOLE: &[Whole] = &[
    whole("requests.total", "Requests", "", Neither),
    whole("requests.successful", "Successful requests", "", Neither),
    whole("requests.failed", "Failed requests", "", Lower),
    whole("requests.success-share", "Success share", "", Higher),
    whole("tokens.input", "Input tokens", "tokens", Neither),
    whole("tokens.output", "Output tokens", "tokens", Neither),
    whole("tokens.output-retokenized", "Output tokens, retokenized", "tokens", Neither),
    whole("tokens.acceptance-length", "Acceptance length", "tokens/step", Higher),
    whole("throughput.duration-s", "Duration", "s", Neither),
    whole("throughput.requests-per-s", "Request throughput", "req/s", Higher),
    whole("throughput.input-tokens-per-s", "Input token throughput", "tok/s", Higher),
    whole("throughput.output-tokens-per-s", "Output token throughput", "tok/s", Higher),
    whole("throughput.total-tokens-per-s", "Total token throughput", "tok/s", Higher),
    whole("throughput.peak-output-tokens-per-s", "Peak output token throughput", "tok/s", Neither),
    whole("throughput.audio-s-per-s", "Sound in answers, seconds per second", "s/s", Higher),
    whole("throughput.input-audio-s-per-s", "Sound in prompts, seconds per second", "s/s", Higher),
    whole("throughput.sent-requests-per-s", "Requests sent", "req/s", Neither),
    whole("throughput.due-requests-per-s", "Requests due", "req/s", Neither),
    whole(
        "throughput.drain-share",
        "Share of the duration after the last request was sent",
        "",
        Neither,
    ),
    whole("arrivals.due-gap-cv", "Coefficient of variation of the gaps as due", "", Neither),
    whole("arrivals.sent-gap-cv", "Coefficient of variation of the gaps as sent", "", Neither),
    whole("concurrency.mean", "Concurrency", "", Neither),
    whole("concurrency.peak", "Peak concurrent requests", "", Neither),
    whole("goodput.requests-per-s", "Request goodput", "req/s", Higher),
    whole("goodput.slo-attainment", "SLO attainment", "", Higher),
    whole("goodput.output-tokens-per-s", "Output token goodput", "tok/s", Higher),
    whole("sessions.total", "Sessions", "", Neither),
    whole("sessions.complete", "Complete sessions", "", Neither),
    whole("sessions.failed", "Sessions with a failure", "", Lower),
    whole("sessions.cut-short", "Sessions cut short", "", Neither),
    whole("sessions.sessions-per-s", "Session throughput", "sessions/s", Higher),
    whole("sessions.turns-per-s", "Turn throughput", "turns/s", Higher),
    whole(READY_AFTER, "Start of the engine until it answered", "s", Lower),
    whole(FIRST_TOKEN_AFTER, "Start of the engine until its first token", "s", Lower),
    whole("server.preemptions", "Server preemptions", "", Lower),
    whole("server.stages.queue-ms", "Mean time in the server's queue", "ms", Lower),
    whole("server.stages.prefill-queue-ms", "Mean time in the queue before prefill", "ms", Lower),
    whole("server.stages.prefill-ms", "Mean time of prefill", "ms", Lower),
    whole("server.stages.transfer-ms", "Mean time of the transfer of keys and values", "ms", Lower),
    whole("server.stages.decode-queue-ms", "Mean time in the queue before decode", "ms", Lower),
    whole("server.stages.first-step-ms", "Mean time of the first step of decode", "ms", Lower),
    whole("devices.energy-j", "Device energy", "J", Lower),
    whole("devices.mean-power-w", "Mean device power", "W", Neither),
    whole("devices.max-power-w", "Largest device power", "W", Neither),
    whole("devices.mean-utilization", "Mean device utilisation", "", Neither),
    whole("devices.max-temperature-c", "Highest device temperature", "°C", Neither),
    whole("devices.peak-memory-bytes", "Peak device memory", "B", Neither),
    whole("devices.throttled-share", "Largest share of throttled time", "", Lower),
    whole(
        "devices.energy-per-million-output-tokens",
        "Device energy per million output tokens",
        "J",
        Lower,
    ),
    whole(
        "devices.energy-per-million-total-tokens",
        "Device energy per million tokens",
        "J",
        Lower,
    ),
    whole(
        "devices.steady.energy-per-million-output-tokens",
        "Device energy per million output tokens, steady",
        "J",
        Lower,
    ),
    whole("devices.host.energy-j", "Host energy", "J", Lower),
    whole(
        "devices.host.energy-per-million-output-tokens",
        "Host energy per million output tokens",
        "J",
        Lower,
    ),
    whole(
        "devices.host.energy-per-million-total-tokens",
        "Host energy per million tokens",
        "J",
        Lower,
    ),
    whole("cost.total", "Cost", "", Neither),
    whole("cost.per-million-output-tokens", "Cost per million output tokens", "", Lower),
    whole("cost.per-million-total-tokens", "Cost per million tokens", "", Lower),
];

const fn whole(
    name: &'static str,
    label: &'static str,
    unit: &'static str,
    better: Better,
) -> Whole {
    Whole { name, label, unit, better }
}
