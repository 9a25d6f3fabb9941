//! The figures of the run as a whole: their names, units, and where a summary has them.

use super::Better;
use super::Better::{Higher, Lower, Neither};
use crate::summary::{Summary, server};

/// A figure of the run as a whole.
pub struct Whole {
    /// Its name.
    pub name: &'static str,
    /// The name that people use.
    pub label: &'static str,
    /// Its unit, or nothing for a share or a number.
    pub unit: &'static str,
    pub better: Better,
    /// Reads it from a summary.
    pub(super) read: fn(&Summary) -> Option<f64>,
}

/// Every figure of the run as a whole.
pub static WHOLE: &[Whole] = &[
    whole("requests.total", "Requests", "", Neither, |s| {
        Some(s.requests.total as f64)
    }),
    whole(
        "requests.successful",
        "Successful requests",
        "",
        Neither,
        |s| Some(s.requests.successful as f64),
    ),
    whole("requests.failed", "Failed requests", "", Lower, |s| {
        Some(s.requests.failed as f64)
    }),
    whole("requests.success-share", "Success share", "", Higher, |s| {
        s.requests.success_share
    }),
    whole("tokens.input", "Input tokens", "tokens", Neither, |s| {
        s.tokens.input.total.map(|n| n as f64)
    }),
    whole("tokens.output", "Output tokens", "tokens", Neither, |s| {
        s.tokens.output.total.map(|n| n as f64)
    }),
    whole(
        "tokens.output-retokenized",
        "Output tokens, retokenized",
        "tokens",
        Neither,
        |s| s.tokens.output_retokenized.map(|n| n as f64),
    ),
    whole("throughput.duration-s", "Duration", "s", Neither, |s| {
        s.throughput.duration_s
    }),
    whole(
        "throughput.requests-per-s",
        "Request throughput",
        "req/s",
        Higher,
        |s| s.throughput.requests_per_s,
    ),
    whole(
        "throughput.input-tokens-per-s",
        "Input token throughput",
        "tok/s",
        Higher,
        |s| s.throughput.input_tokens_per_s,
    ),
    whole(
        "throughput.output-tokens-per-s",
        "Output token throughput",
        "tok/s",
        Higher,
        |s| s.throughput.output_tokens_per_s,
    ),
    whole(
        "throughput.total-tokens-per-s",
        "Total token throughput",
        "tok/s",
        Higher,
        |s| s.throughput.total_tokens_per_s,
    ),
    whole(
        "throughput.peak-output-tokens-per-s",
        "Peak output token throughput",
        "tok/s",
        Neither,
        |s| s.throughput.peak_output_tokens_per_s,
    ),
    whole(
        "throughput.sent-requests-per-s",
        "Requests sent",
        "req/s",
        Neither,
        |s| s.throughput.sent_requests_per_s,
    ),
    whole(
        "throughput.due-requests-per-s",
        "Requests due",
        "req/s",
        Neither,
        |s| s.throughput.due_requests_per_s,
    ),
    whole(
        "throughput.drain-share",
        "Share of the duration after the last request was sent",
        "",
        Neither,
        |s| s.throughput.drain_share,
    ),
    whole(
        "arrivals.due-gap-cv",
        "Coefficient of variation of the gaps as due",
        "",
        Neither,
        |s| s.arrivals?.due_gap_cv,
    ),
    whole(
        "arrivals.sent-gap-cv",
        "Coefficient of variation of the gaps as sent",
        "",
        Neither,
        |s| s.arrivals?.sent_gap_cv,
    ),
    whole("concurrency.mean", "Concurrency", "", Neither, |s| {
        s.concurrency.mean
    }),
    whole(
        "concurrency.peak",
        "Peak concurrent requests",
        "",
        Neither,
        |s| s.concurrency.peak.map(|n| n as f64),
    ),
    whole(
        "goodput.requests-per-s",
        "Request goodput",
        "req/s",
        Higher,
        |s| s.goodput.as_ref()?.requests_per_s,
    ),
    whole(
        "goodput.slo-attainment",
        "SLO attainment",
        "",
        Higher,
        |s| s.goodput.as_ref()?.slo_attainment,
    ),
    whole(
        "goodput.output-tokens-per-s",
        "Output token goodput",
        "tok/s",
        Higher,
        |s| s.goodput.as_ref()?.output_tokens_per_s,
    ),
    whole("sessions.total", "Sessions", "", Neither, |s| {
        Some(s.sessions?.total as f64)
    }),
    whole("sessions.complete", "Complete sessions", "", Neither, |s| {
        Some(s.sessions?.complete as f64)
    }),
    whole(
        "sessions.failed",
        "Sessions with a failure",
        "",
        Lower,
        |s| Some(s.sessions?.failed as f64),
    ),
    whole(
        "sessions.cut-short",
        "Sessions cut short",
        "",
        Neither,
        |s| Some(s.sessions?.cut_short as f64),
    ),
    whole(
        "sessions.sessions-per-s",
        "Session throughput",
        "sessions/s",
        Higher,
        |s| s.sessions?.sessions_per_s,
    ),
    whole(
        "sessions.turns-per-s",
        "Turn throughput",
        "turns/s",
        Higher,
        |s| s.sessions?.turns_per_s,
    ),
    whole("server.preemptions", "Server preemptions", "", Lower, |s| {
        s.server.as_ref()?.counted(server::Figure::Preemptions)
    }),
    whole("devices.energy-j", "Device energy", "J", Lower, |s| {
        s.devices.as_ref()?.energy_j
    }),
    whole(
        "devices.mean-power-w",
        "Mean device power",
        "W",
        Neither,
        |s| s.devices.as_ref()?.mean_power_w,
    ),
    whole(
        "devices.max-power-w",
        "Largest device power",
        "W",
        Neither,
        |s| s.devices.as_ref()?.max_power_w,
    ),
    whole(
        "devices.mean-utilization",
        "Mean device utilisation",
        "",
        Neither,
        |s| s.devices.as_ref()?.mean_utilization,
    ),
    whole(
        "devices.max-temperature-c",
        "Highest device temperature",
        "°C",
        Neither,
        |s| s.devices.as_ref()?.max_temperature_c,
    ),
    whole(
        "devices.peak-memory-bytes",
        "Peak device memory",
        "B",
        Neither,
        |s| s.devices.as_ref()?.peak_memory_bytes.map(|n| n as f64),
    ),
    whole(
        "devices.throttled-share",
        "Largest share of throttled time",
        "",
        Lower,
        |s| s.devices.as_ref()?.throttled_share,
    ),
    whole(
        "devices.energy-per-million-output-tokens",
        "Device energy per million output tokens",
        "J",
        Lower,
        |s| s.devices.as_ref()?.energy_per_million_output_tokens,
    ),
    whole(
        "devices.energy-per-million-total-tokens",
        "Device energy per million tokens",
        "J",
        Lower,
        |s| s.devices.as_ref()?.energy_per_million_total_tokens,
    ),
    whole(
        "devices.steady.energy-per-million-output-tokens",
        "Device energy per million output tokens, steady",
        "J",
        Lower,
        |s| s.devices.as_ref()?.steady?.energy_per_million_output_tokens,
    ),
    whole("devices.host.energy-j", "Host energy", "J", Lower, |s| {
        s.devices.as_ref()?.host.as_ref()?.energy_j
    }),
    whole(
        "devices.host.energy-per-million-output-tokens",
        "Host energy per million output tokens",
        "J",
        Lower,
        |s| {
            let host = s.devices.as_ref()?.host.as_ref()?;
            host.energy_per_million_output_tokens
        },
    ),
    whole(
        "devices.host.energy-per-million-total-tokens",
        "Host energy per million tokens",
        "J",
        Lower,
        |s| {
            let host = s.devices.as_ref()?.host.as_ref()?;
            host.energy_per_million_total_tokens
        },
    ),
    whole("cost.total", "Cost", "", Neither, |s| {
        s.cost.as_ref()?.total
    }),
    whole(
        "cost.per-million-output-tokens",
        "Cost per million output tokens",
        "",
        Lower,
        |s| s.cost.as_ref()?.per_million_output_tokens,
    ),
    whole(
        "cost.per-million-total-tokens",
        "Cost per million tokens",
        "",
        Lower,
        |s| s.cost.as_ref()?.per_million_total_tokens,
    ),
];

const fn whole(
    name: &'static str,
    label: &'static str,
    unit: &'static str,
    better: Better,
    read: fn(&Summary) -> Option<f64>,
) -> Whole {
    Whole {
        name,
        label,
        unit,
        better,
        read,
    }
}
