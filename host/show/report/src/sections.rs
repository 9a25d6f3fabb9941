//! The sections that the text block and the page both have: a table of rows for each, with the
//! label and the notation of both forms.

use crate::document::Pair;
use crate::page::figures::{HEADLINE, LABELS};
use model::number::{count, fixed, percent, significant};
use result::metric;
use result::summary::server::{Figure as ServerFigure, Server};
use result::summary::{Counted, Reported, Summary, Window};
use series::{Figure as Series, Name};

pub(crate) const GIB: f64 = (1u64 << 30) as f64;

/// The labels in the block, without the colon, and on the page; an empty one hides the row.
type Labels<'a> = [&'a str; 2];

/// A row of a section in both forms.
pub(crate) struct Row {
    labels: [String; 2],
    values: [Option<String>; 2],
}

impl Row {
    fn new(labels: Labels<'_>, values: [Option<String>; 2]) -> Self {
        Row { labels: labels.map(str::to_owned), values }
    }

    /// A text that is the same in both forms.
    fn text(labels: Labels<'_>, text: Option<String>) -> Self {
        Row::new(labels, [text.clone(), text])
    }

    /// A row of the page alone.
    fn of_page(label: &str, value: Option<String>) -> Self {
        Row::new(["", label], [None, value])
    }

    /// A text with numbers in the notation of the form.
    fn numbers(labels: Labels<'_>, text: impl Fn(fn(u64) -> String) -> Option<String>) -> Self {
        Row::new(labels, [text(|number| number.to_string()), text(count)])
    }

    fn count(labels: Labels<'_>, value: Option<u64>) -> Self {
        Row::numbers(labels, |notation| value.map(notation))
    }

    /// A figure whose unit the labels have.
    fn figure(labels: Labels<'_>, value: Option<f64>) -> Self {
        Row::measured(labels, value, "")
    }

    /// A figure; the block has its unit in the label, the page with the value.
    fn measured(labels: Labels<'_>, value: Option<f64>, unit: &str) -> Self {
        let page = value.map(|value| format!("{}{unit}", significant(value, 4)));
        Row::new(labels, [value.map(|value| format!("{value:.2}")), page])
    }

    fn share(labels: Labels<'_>, share: Option<f64>) -> Self {
        let text = share.map(|share| format!("{:.2}", share * 100.0));
        Row::new(labels, [text, share.map(percent)])
    }

    pub(crate) fn line(self) -> Option<(String, String)> {
        let ([label, _], [value, _]) = (self.labels, self.values);
        value.filter(|_| !label.is_empty()).map(|value| (format!("{label}:"), value))
    }

    pub(crate) fn pair(self) -> Option<Pair> {
        let ([_, name], [_, value]) = (self.labels, self.values);
        value.filter(|_| !name.is_empty()).map(|value| Pair { name, value })
    }
}

pub(crate) fn goodput(summary: &Summary) -> Vec<Row> {
    let Some(goodput) = &summary.goodput else { return Vec::new() };
    let mut rows = vec![
        Row::count(["Good requests"; 2], Some(goodput.good)),
        Row::share(["SLO attainment (%)", "Share of the due requests"], goodput.slo_attainment),
        Row::figure(["", "Good requests per second"], goodput.requests_per_s),
        Row::figure(["", "Their output tokens per second"], goodput.output_tokens_per_s),
    ];
    for (metric, of) in &goodput.objectives {
        let unknown = match of.unknown {
            0 => String::new(),
            unknown => format!(", {} unknown", count(unknown)),
        };
        let share = of.attainment.map(|share| format!("{}: ", percent(share)));
        let (share, kept, missed) = (share.unwrap_or_default(), count(of.kept), count(of.missed));
        rows.push(Row::new(
            [
                &format!("{metric} <= {} ms (%)", of.at_most_ms),
                &format!("{metric} at most {} ms", significant(of.at_most_ms, 4)),
            ],
            [
                of.attainment.map(|share| format!("{:.2}", share * 100.0)),
                Some(format!("{share}{kept} met, {missed} missed{unknown}")),
            ],
        ));
    }
    let per_s = goodput.output_tokens_per_s;
    rows.push(Row::figure(["Output token goodput (tok/s)", ""], per_s));
    if let Some(stalls) = summary.metric(metric::STALL_SHARE) {
        rows.push(Row::share(["Mean Stall Share (%)", ""], Some(stalls.mean)));
        rows.push(Row::share(["P99 Stall Share (%)", ""], stalls.percentile(99.0)));
    }
    rows
}

pub(crate) fn sessions(summary: &Summary) -> Vec<Row> {
    let Some(sessions) = &summary.sessions else { return Vec::new() };
    let of = |name: &str| {
        let of = summary.metric(name)?;
        let p99 = of.percentile(99.0)?;
        let unit = &of.unit;
        let (median, p99) = (significant(of.median, 4), significant(p99, 4));
        Some(format!("{median} {unit}, P99 {p99} {unit}"))
    };
    let histories = summary.histories.map(|histories| {
        let share = histories.recorded_share().map(percent).unwrap_or_default();
        format!("{}; of their answers, {share} are those on record", count(histories.requests))
    });
    let agents = summary.agents;
    let source = agents.and_then(|agents| agents.power_source);
    let source = source.map_or_else(String::new, |source| format!(" ({} power)", source.name()));
    let per_megawatt = format!("Agents per megawatt{source}");
    let cancelled = Some(sessions.cancelled).filter(|count| *count > 0);
    vec![
        Row::count(["Sessions"; 2], Some(sessions.total)),
        Row::count(["Complete sessions", "Complete"], Some(sessions.complete)),
        Row::count(["Sessions with a failure", "With a failure"], Some(sessions.failed)),
        Row::count(["Sessions cancelled (on purpose)", "Cancelled on purpose"], cancelled),
        Row::count(["Sessions cut short", "Cut short"], Some(sessions.cut_short)),
        Row::figure(
            ["Session throughput (sessions/s)", "Complete sessions per second"],
            sessions.sessions_per_s,
        ),
        Row::figure(
            ["Turn throughput (turns/s)", "Answered turns per second"],
            sessions.turns_per_s,
        ),
        Row::figure(["Jobs an hour and a user"; 2], agents.and_then(|it| it.jobs_per_h_and_user)),
        Row::figure(
            ["Jobs an hour and a device"; 2],
            agents.and_then(|it| it.jobs_per_h_and_device),
        ),
        Row::figure(["Agents per device"; 2], agents.and_then(|it| it.agents_per_device)),
        Row::figure([&per_megawatt; 2], agents.and_then(|it| it.agents_per_megawatt)),
        Row::of_page("Time of a session, median", of(metric::SESSION_TIME)),
        Row::of_page("Of this in flight", of(metric::SESSION_IN_FLIGHT)),
        Row::of_page("Of this idle", of(metric::SESSION_IDLE)),
        Row::of_page("Requests of a session, median", of(metric::SESSION_TURNS)),
        Row::of_page("Wait for other parents, median", of(metric::PARENT_WAIT)),
        Row::of_page("Requests with a history", histories),
    ]
}

pub(crate) fn steady(window: &Window) -> Vec<Row> {
    let of_block = |label: &str, value: String| Row::new([label, ""], [Some(value), None]);
    let (at_least, plateau) = (window.at_least, window.plateau);
    let bounds = format!("{:.2}, {:.2}", window.from_s, window.to_s);
    let concurrency = window.mean_in_flight;
    let mut rows = vec![
        of_block("Steady with in flight", format!("{at_least} of {plateau} or more")),
        of_block("Steady from, to (s)", bounds),
        Row::count(["Steady requests, ended", "Requests that ended in it"], Some(window.ended)),
        Row::count(["Steady requests, sent", "Requests sent in it"], Some(window.sent)),
        Row::figure(["Steady concurrency", ""], Some(concurrency)),
        Row::figure(
            ["Steady request throughput (req/s)", "Requests per second"],
            Some(window.requests_per_s),
        ),
        Row::figure(
            ["Steady output throughput (tok/s)", "Output tokens per second"],
            window.output_tokens_per_s,
        ),
        Row::figure(["", "In flight"], Some(concurrency)),
    ];
    for (name, label) in HEADLINE.into_iter().zip(LABELS) {
        let Some(of) = window.metrics.get(name) else { continue };
        let p99 = of.percentile(99.0);
        if name != metric::E2E {
            let labels = ["mean", "P99"].map(|which| format!("Steady {which} {label} (ms)"));
            rows.push(Row::figure([&labels[0], ""], Some(of.mean)));
            rows.push(Row::figure([&labels[1], ""], p99));
        }
        let p99 = p99.map(|p99| format!(", P99 {} ms", significant(p99, 4))).unwrap_or_default();
        let value = format!("{} ms{p99}", significant(of.median, 4));
        rows.push(Row::of_page(&format!("{label}, median"), Some(value)));
    }
    let drift = window.drift.iter().map(|(name, drift)| {
        let change = format!("{:+.1} %", drift.change * 100.0);
        format!("{name} {}", change.replace('-', "\u{2212}"))
    });
    let drift: Vec<String> = drift.collect();
    let drift = (!drift.is_empty()).then(|| drift.join(", "));
    let swing = window
        .swing
        .map(|swing| format!("{} s, by {}", significant(swing.period_s, 3), percent(swing.share)));
    rows.push(Row::of_page("Change from beginning to end", drift));
    rows.push(Row::of_page("Throughput oscillates every", swing));
    rows
}

pub(crate) fn tokens(summary: &Summary) -> Vec<Row> {
    let tokens = &summary.tokens;
    let kind = |label, kind: Option<Reported>| {
        Row::numbers([label; 2], |notation| kind.map(|kind| kind.label(notation)))
    };
    let (drafts, steps) = (tokens.drafts.as_ref(), tokens.speculation.as_ref());
    let tpot = steps.and_then(|steps| steps.tpot.as_ref());
    let correlation = tpot.and_then(|tpot| tpot.rank_correlation);
    let tokenizer = summary.run.tokenizer.as_ref();
    let mut rows = vec![
        Row::of_page("Input tokens", tokens.input.total.map(count)),
        Row::numbers(["Input tokens by source", "Counted by, in requests"], |notation| {
            sources(&tokens.input, notation)
        }),
        Row::of_page("Output tokens", tokens.output.total.map(count)),
        Row::numbers(["Output tokens by source", "Counted by, in requests"], |notation| {
            sources(&tokens.output, notation)
        }),
        Row::count(["Output tokens requested"; 2], tokens.output_requested),
        Row::of_page("Output tokens, retokenized", tokens.output_retokenized.map(count)),
        Row::count(["Cached input tokens"; 2], tokens.input_cached),
        Row::count(["Reasoning tokens"; 2], tokens.output_reasoning),
        Row::text(
            ["Reasoning text, answers", "Reasoning text, in answers"],
            tokens.reasoning.as_ref().map(|reasoning| reasoning.label()),
        ),
        Row::numbers(["Draft tokens accepted"; 2], |notation| {
            drafts.map(|drafts| drafts.label(notation))
        }),
        Row::figure(
            ["Acceptance length (tok/step)", "Acceptance length, in tokens per step"],
            steps.and_then(|steps| steps.acceptance_length),
        ),
        Row::numbers(["Steps by accepted tokens"; 2], |notation| steps?.label(notation)),
        Row::text(
            ["Steps that accepted at position"; 2],
            steps.and_then(|steps| steps.positions()),
        ),
        Row::numbers(
            ["TPOT by acceptance length", "TPOT by acceptance length, answers in brackets"],
            |notation| tpot.map(|tpot| tpot.label(notation)),
        ),
        Row::new(
            ["Rank correlation of the two", "Rank correlation of TPOT and acceptance length"],
            [
                correlation.map(|correlation| format!("{correlation:.2}")),
                correlation.map(|correlation| fixed(correlation, 2)),
            ],
        ),
        kind("Image tokens, of the input", tokens.input_image),
        kind("Video tokens, of the input", tokens.input_video),
        kind("Audio tokens, of the input", tokens.input_audio),
        kind("Audio tokens, of the output", tokens.output_audio),
    ];
    let mut counts = Vec::new();
    for (name, value) in &summary.counts {
        let text = value.label(|number| number.to_string());
        rows.push(Row::new([name, ""], [Some(text), None]));
        counts.push(format!("{name} {}", value.label(count)));
    }
    let counts = (!counts.is_empty()).then(|| counts.join(", "));
    rows.push(Row::of_page("Further counts of the server", counts));
    rows.push(Row::figure(["Output tokens per event"; 2], tokens.per_event));
    let page = tokenizer.map(|tokenizer| match tokenizer.remark() {
        Some(remark) => format!("{}, {remark}", tokenizer.name),
        None => tokenizer.name.clone(),
    });
    let text = tokenizer.map(|tokenizer| tokenizer.label());
    rows.push(Row::new(["Tokenizer", "Tokenizer of the client"], [text, page]));
    rows
}

/// Counts the answers by source: `usage 8, length 1, unknown 1`.
fn sources(counted: &Counted, notation: fn(u64) -> String) -> Option<String> {
    let known = counted.exchanges_by_source.iter().map(|(source, n)| (source.name(), *n));
    let unknown = (counted.unknown > 0).then_some(("unknown", counted.unknown));
    let parts = known.chain(unknown).map(|(source, n)| format!("{source} {}", notation(n)));
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The counts of all targets together, and the fullest cache.
pub(crate) fn cache(summary: &Summary) -> Vec<Row> {
    let Some(cache) = &summary.cache else { return Vec::new() };
    let reported = cache.reported.as_ref();
    let found = reported.and_then(|cache| cache.shares()).map(|(_, found)| found);
    vec![
        Row::text(
            ["Prefix cache before the run", "Before the run"],
            Some(cache.policy.to_string()),
        ),
        Row::count(["", "Prompt tokens counted"], Some(cache.tokens)),
        Row::share(
            ["Prompt tokens that repeat (%)", "Prompt tokens that repeat"],
            cache.reusable_share(),
        ),
        Row::count(["Reported cached tokens"; 2], reported.map(|cache| cache.cached)),
        Row::share(["Reported cached tokens (%)", "Reported cached share"], found),
    ]
}

pub(crate) fn server(server: &Server) -> Vec<Row> {
    let counted = |labels, figure| {
        let value = server.counted(figure);
        let page = value.map(|value| significant(value, 12));
        Row::new(labels, [value.map(|value| value.to_string()), page])
    };
    let hits = server.counted(ServerFigure::PrefixCacheHits);
    let queries = server.counted(ServerFigure::PrefixCacheQueries);
    let share = hits.zip(queries).filter(|(_, queries)| *queries > 0.0);
    let cache = match server.largest(ServerFigure::KvCacheUsage) {
        [Some(before), Some(after)] => [
            Some(format!("{:.1}, {:.1}", before * 100.0, after * 100.0)),
            Some(format!("{} before, {} after", percent(before), percent(after))),
        ],
        _ => [None, None],
    };
    vec![
        counted(["Server finished requests", "Finished requests"], ServerFigure::FinishedRequests),
        counted(["Server input tokens", "Input tokens"], ServerFigure::InputTokens),
        counted(["Server output tokens", "Output tokens"], ServerFigure::OutputTokens),
        counted(["Server preemptions", "Preemptions"], ServerFigure::Preemptions),
        Row::share(
            ["Server prefix cache hits (%)", "Tokens found in the prefix cache"],
            share.map(|(hits, queries)| hits / queries),
        ),
        Row::new(["Server KV cache, before, after (%)", "KV cache in use"], cache),
    ]
}

/// The targets that did not return their metrics after the run, a sentence each.
pub(crate) fn lost(server: &Server) -> impl Iterator<Item = String> {
    server.targets.iter().filter_map(|target| {
        let why = target.lost.as_ref()?;
        Some(format!("{} did not return its metrics after the run: {why}", target.url))
    })
}

pub(crate) fn devices(summary: &Summary) -> Vec<Row> {
    let Some(devices) = &summary.devices else { return Vec::new() };
    let names: Vec<&str> =
        (devices.each.iter()).filter_map(|figures| figures.device.name.as_deref()).collect();
    let number = devices.each.len();
    let all = match names.first() {
        Some(name) if names.iter().all(|own| own == name) => format!("{number} x {name}"),
        _ => number.to_string(),
    };
    let host = devices.host.as_ref();
    let watts = |labels, value| Row::measured(labels, value, " W");
    let joules = |labels, value| Row::measured(labels, value, " J");
    let memory = devices.peak_memory_bytes.map(|bytes| bytes as f64 / GIB);
    vec![
        Row::new(["Devices", ""], [Some(all), None]),
        watts(["Mean device power (W)", "Mean power"], devices.mean_power_w),
        watts(["Largest device power (W)", "Largest power"], devices.max_power_w),
        joules(["Device energy (J)", "Energy"], devices.energy_j),
        joules(
            ["Device energy per 1M output tokens (J)", "Energy per million output tokens"],
            devices.energy_per_million_output_tokens,
        ),
        joules(
            ["Device energy per 1M tokens (J)", "Energy per million tokens"],
            devices.energy_per_million_total_tokens,
        ),
        joules(
            ["Same, steady, output tokens (J)", "Energy per million output tokens, steady"],
            devices.steady.and_then(|steady| steady.energy_per_million_output_tokens),
        ),
        Row::share(["Mean device utilisation (%)", "Mean utilisation"], devices.mean_utilization),
        Row::figure(["Highest device temperature (°C)", ""], devices.max_temperature_c),
        Row::figure(["Peak device memory (GiB)", ""], memory),
        Row::share(
            ["Throttled by heat or supply (%)", "Throttled by heat or supply"],
            devices.throttled_share,
        ),
        watts(
            ["Host processor power (W)", "Power of this machine's processors"],
            host.and_then(|host| host.mean_power_w),
        ),
        joules(
            ["Host energy per 1M output tokens (J)", "Their energy per million output tokens"],
            host.and_then(|host| host.energy_per_million_output_tokens),
        ),
        Row::count(
            ["Device readings that failed", "Readings that failed"],
            devices.failed_readings,
        ),
        Row::of_page("Driver", devices.driver.clone()),
    ]
}

/// Remarks on the devices, and on the host last.
pub(crate) fn device_notes(summary: &Summary) -> (Vec<String>, Option<String>) {
    let Some(devices) = &summary.devices else { return (Vec::new(), None) };
    let notes = devices.each.iter().enumerate().flat_map(|(place, figures)| {
        let label = figures.device.label(place);
        figures.notes.iter().map(move |note| format!("device {label}: {note}"))
    });
    (notes.collect(), devices.host.as_ref().and_then(|host| host.note.clone()))
}

/// The cost, in the currency of the price.
pub(crate) fn cost(summary: &Summary) -> Vec<Row> {
    let Some(cost) = &summary.cost else { return Vec::new() };
    let currency = cost.currency.as_ref().map(|label| format!(" {label}")).unwrap_or_default();
    let amount = |labels, amount: Option<f64>| {
        let text = amount.map(|amount| format!("{amount:.4}{currency}"));
        let page = amount.map(|amount| format!("{}{currency}", significant(amount, 4)));
        Row::new(labels, [text, page])
    };
    vec![
        amount(["Cost of the run", "The run"], cost.total),
        amount(
            ["Cost per 1M output tokens", "A million output tokens"],
            cost.per_million_output_tokens,
        ),
        amount(["Cost per 1M tokens", "A million tokens"], cost.per_million_total_tokens),
        amount(["", "An hour"], Some(cost.per_hour)),
    ]
}

/// Of a figure of the server's series: the label, the series' name, the value, and the factor.
type SeriesRow = (&'static str, Name, fn(&Series) -> Option<f64>, f64);

const SERIES: [SeriesRow; 28] = [
    ("Mean running requests", Name::Running, |it| it.mean, 1.0),
    ("Most running requests", Name::Running, |it| it.max, 1.0),
    ("Mean waiting requests", Name::Waiting, |it| it.mean, 1.0),
    ("Most waiting requests", Name::Waiting, |it| it.max, 1.0),
    ("Mean KV cache usage (%)", Name::KvUsage, |it| it.mean, 100.0),
    ("Highest KV cache usage (%)", Name::KvUsage, |it| it.max, 100.0),
    ("Prefix cache hit rate (%)", Name::CacheHitRate, |it| it.mean, 100.0),
    ("Tokens from the device cache", Name::DeviceCached, |it| it.total, 1.0),
    ("Tokens from the host cache", Name::HostCached, |it| it.total, 1.0),
    ("Tokens from storage", Name::StorageCached, |it| it.total, 1.0),
    ("Tokens from external caches", Name::ExternalCached, |it| it.total, 1.0),
    ("External hits of external queries (%)", Name::ExternalHitRate, |it| it.mean, 100.0),
    ("KV loaded to devices (MB)", Name::KvLoaded, |it| it.total, 1e-6),
    ("KV stored from devices (MB)", Name::KvStored, |it| it.total, 1e-6),
    ("Preemptions", Name::Preemptions, |it| it.total, 1.0),
    ("Refused requests", Name::Refused, |it| it.total.filter(|it| *it > 0.0), 1.0),
    ("Mean tokens per engine step", Name::BatchTokens, |it| it.mean, 1.0),
    ("Drafted tokens accepted (%)", Name::Acceptance, |it| it.mean, 100.0),
    ("Input tokens (tok/s)", Name::InputTokens, |it| it.per_s, 1.0),
    ("Output tokens (tok/s)", Name::OutputTokens, |it| it.per_s, 1.0),
    ("Mean queue time (ms)", Name::QueueTime, |it| it.mean, 1.0),
    ("P99 queue time (ms)", Name::QueueTime, |it| it.p99, 1.0),
    ("Mean prefill time (ms)", Name::PrefillTime, |it| it.mean, 1.0),
    ("P99 prefill time (ms)", Name::PrefillTime, |it| it.p99, 1.0),
    ("Mean KV transfer time (ms)", Name::TransferTime, |it| it.mean, 1.0),
    ("Mean TTFT, by the server (ms)", Name::ServerTtft, |it| it.mean, 1.0),
    ("It may be off by (ms)", Name::ServerTtft, |it| it.mean_within, 1.0),
    ("Most KV caches under way", Name::Transferring, |it| it.max, 1.0),
];

pub(crate) fn series(summary: &Summary) -> Vec<Row> {
    let Some(series) = &summary.server_series else { return Vec::new() };
    let figures = SERIES.iter().filter_map(|(label, name, read, factor)| {
        Some((*label, read(series.figures.get(name)?)? * factor))
    });
    let queued = series.queues.iter().map(|queue| queue.queued).reduce(f64::max);
    let queued = queued.map(|share| ("Time with a queue (%)", share * 100.0));
    let pages = ("Metrics pages read", series.pages as f64);
    let rows = figures.chain(queued).chain([pages]).map(|(label, value)| {
        let is_count = ["Most ", "Preemptions", "Refused", "Metrics pages"]
            .iter()
            .any(|start| label.starts_with(start));
        let text = if is_count { format!("{value:.0}") } else { format!("{value:.2}") };
        Row::new([label; 2], [Some(text), Some(significant(value, 4))])
    });
    rows.collect()
}
