//! The course of runs over time: throughput, requests in flight, requests that wait for the cap,
//! failures, power, and the server's own figures.

use super::{RunView, keys, seconds, sentences};
use crate::chart::{
    Axis, Band, Cell, Chart, Form, Key, Mark, Panel, Point, Rows, Rule, Shape, Side, Snap, Ticks,
    Tone, scale,
};
use crate::view::Course;
use model::number::{count, short, significant};
use result::summary::SteadyState;
use series::Name;

/// Mean waiting requests of a span from which they get a panel: every request waits a moment.
const SEEN: f64 = 0.05;

/// The values of a panel in each span of a run; an unknown value is absent.
type Values<'a> = &'a dyn Fn(&Course) -> Option<Vec<Option<f64>>>;

/// The values of spans that are all known.
fn known<'a>(values: impl IntoIterator<Item = &'a f64>) -> Option<Vec<Option<f64>>> {
    Some(values.into_iter().copied().map(Some).collect())
}

/// The chart; `None` if no run took any time.
pub(super) fn chart(runs: &[RunView]) -> Option<Chart> {
    let alone = runs.len() == 1;
    let mut keys = keys(runs);
    if alone {
        keys[0].label = "throughput and load".to_owned();
        keys.push(Key { label: "failures".to_owned(), tone: Tone::Failed });
    }
    let drawing = Drawing { runs, alone };
    if drawing.courses().all(|course| course.duration_s <= 0.0) {
        return None;
    }
    let failed: u64 = drawing.courses().flat_map(|course| &course.failed).sum();
    let mut waiting = drawing.courses().flat_map(|course| &course.waiting).flatten();
    let held_back = waiting.any(|waiting| *waiting >= SEEN);
    let mut panels: Vec<Panel> = [
        drawing.panel("output tokens per second", "tok/s", 130.0, &|course| {
            known(course.tokens_per_s.as_ref()?)
        }),
        drawing.panel("requests in flight", "in flight", 104.0, &|course| known(&course.in_flight)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if alone && let Some(of_flight) = panels.last_mut() {
        cap(&runs[0], of_flight);
    }
    if held_back {
        let title = "requests waiting for the cap";
        panels.extend(
            drawing.panel(title, "waiting", 72.0, &|course| known(course.waiting.as_ref()?)),
        );
    }
    if failed > 0 {
        let panel = drawing.panel("failures", "failed", 56.0, &|course| {
            Some(course.failed.iter().map(|n| Some(*n as f64)).collect())
        });
        panels.extend(panel.map(|mut panel| {
            panel.y.ticks = Ticks::Counts;
            for mark in panel.marks.iter_mut().filter(|_| alone) {
                (mark.key, mark.shape) = (1, Shape::Bars);
            }
            panel
        }));
    } else if alone {
        keys.truncate(1);
    }
    let title = "power of the devices (W)";
    panels.extend(drawing.panel(title, "W", 72.0, &|course| known(course.power_w.as_ref()?)));
    panels.extend(drawing.server());
    let longest = drawing.courses().map(|course| course.duration_s).fold(0.0, f64::max);
    let grain = drawing.courses().map(|course| course.grain_s).fold(0.0, f64::max);
    let spans = drawing.courses().map(|course| course.in_flight.len()).max();
    let spans = (0..spans.unwrap_or(0)).map(|place| place as f64 * grain);
    let mut note = format!(
        "Means over every {} since the measurement began. A level line is steady; one that rises or falls throughout is a drift.",
        seconds(grain)
    );
    if failed == 0 {
        note.push_str(" No request failed.");
    }
    let capped = runs.iter().any(|run| run.view.course.waiting.is_some());
    if capped && !held_back {
        note.push_str(" The cap on requests in flight held no request back for long.");
    }
    Some(Chart {
        name: "course".to_owned(),
        title: "Throughput, load and failures over time".to_owned(),
        note,
        seen: sentences(runs, |number| extremes(&runs[number])),
        x: Axis::new("time since the measurement began (s)", 0.0, longest, Ticks::Numbers),
        panels,
        keys,
        rows: Rows::new(
            "Time",
            spans.map(|from| format!("{} to {}", seconds(from), seconds(from + grain))).collect(),
            Snap::X,
        ),
        log: None,
        form: Form::Full,
    })
}

fn extremes(run: &RunView) -> Option<String> {
    let course = &run.view.course;
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let mut parts = Vec::new();
    if let Some(tokens) = &course.tokens_per_s {
        parts.push(format!("up to {} tok/s", significant(most(tokens), 4)));
    }
    parts.push(format!("up to {} requests in flight", significant(most(&course.in_flight), 3)));
    if let Some(waiting) = &course.waiting {
        parts.push(format!("up to {} waiting", significant(most(waiting), 3)));
    }
    parts.push(format!("{} failures", count(course.failed.iter().sum())));
    Some(format!("{} over {}.", parts.join(", "), seconds(course.duration_s)))
}

/// The cap on requests in flight, if the load came near it.
fn cap(run: &RunView, panel: &mut Panel) {
    let Some(cap) = run.reported.summary.run.max_in_flight else { return };
    let cap = cap as f64;
    if cap <= panel.y.high * 1.5 {
        panel.y.high = panel.y.high.max(scale::round_end(cap * 1.05, 3));
        panel.rules.push(Rule::new(Side::Y, cap, format!("cap {cap}")));
    }
}

/// The panels of the server's series: their titles, their units, and the factor of their values.
const SERVER: [(Name, &str, &str, f64); 12] = [
    (Name::Running, "requests running in the server", "running", 1.0),
    (Name::Waiting, "requests waiting in the server", "waiting", 1.0),
    (Name::KvUsage, "KV cache in use (%)", "%", 100.0),
    (Name::CacheHitRate, "prompt tokens found in the prefix cache (%)", "%", 100.0),
    (Name::Preemptions, "preemptions per second", "per s", 1.0),
    (Name::BatchTokens, "tokens per step of the engine", "tokens", 1.0),
    (Name::Acceptance, "drafted tokens accepted (%)", "%", 100.0),
    (Name::QueueTime, "mean queue time, by the server (ms)", "ms", 1.0),
    (Name::PrefillTime, "mean prefill time, by the server (ms)", "ms", 1.0),
    (Name::TransferTime, "mean transfer time of the KV cache (ms)", "ms", 1.0),
    (Name::Transferring, "requests whose KV cache is under way", "requests", 1.0),
    (Name::Refused, "requests refused per second", "per s", 1.0),
];

struct Drawing<'a> {
    runs: &'a [RunView],
    alone: bool,
}

impl Drawing<'_> {
    fn courses(&self) -> impl Iterator<Item = &Course> {
        self.runs.iter().map(|run| &run.view.course)
    }

    /// A panel for each of the server's figures that is ever above zero, and the times to first
    /// token.
    fn server(&self) -> Vec<Panel> {
        let mut panels = Vec::new();
        for (name, title, unit, factor) in SERVER {
            let panel = self.panel(title, unit, 72.0, &|course| {
                let line = course.server.line(name)?;
                let is_there = line.values.iter().flatten().any(|value| *value > 0.0);
                let values = line.values.iter();
                is_there.then(|| values.map(|value| value.map(|it| it * factor)).collect())
            });
            panels.extend(panel);
        }
        if !panels.is_empty() {
            let title = "mean TTFT of requests sent then (ms)";
            let ttft = self.panel(title, "ms", 72.0, &|course| {
                let values = &course.ttft_ms;
                (values.iter().any(Option::is_some)).then(|| values.clone())
            });
            panels.splice(0..0, ttft);
        }
        panels
    }

    /// A panel of values that may be unknown for some spans; `None` if no run has any.
    fn panel(&self, title: &str, unit: &str, height: f64, values: Values<'_>) -> Option<Panel> {
        let mut most: f64 = 0.0;
        let mut marks = Vec::new();
        let rows = self.courses().map(|course| course.in_flight.len()).max().unwrap_or(0);
        for (number, run) in self.runs.iter().enumerate() {
            let course = &run.view.course;
            let Some(values) = values(course) else { continue };
            most = values.iter().flatten().copied().fold(most, f64::max);
            let spans = values.iter().enumerate().map(|(place, value)| {
                let (from, to) = course.span(place);
                (from, to, *value)
            });
            let points = spans.clone().map(|(x, to, y)| Point { x, to, y });
            // A run that was over earlier has nothing to show of the time after it.
            let after = rows.saturating_sub(values.len());
            let cells = spans.map(|(from, to, value)| {
                let value = value?;
                Some(Cell {
                    x: (from + to) / 2.0,
                    y: value,
                    text: match unit {
                        "tok/s" | "W" | "ms" | "%" => format!("{} {unit}", significant(value, 4)),
                        _ => short((value * 100.0).round() / 100.0, 4),
                    },
                })
            });
            let (shape, head) = match self.alone {
                true => (Shape::Area, title.to_owned()),
                false => (Shape::Steps, format!("{}, {unit}", run.label)),
            };
            let cells = cells.chain(std::iter::repeat_n(None, after)).collect();
            marks.push(Mark::new(number, shape, points.collect()).with_column(head, cells));
        }
        let y = Axis::new(title, 0.0, scale::round_end(most, 3), Ticks::Numbers);
        let is_drawn = !marks.is_empty();
        let bands = self.bands(unit == "tok/s");
        is_drawn.then(|| Panel { bands, ..Panel::new(y, height, marks) })
    }

    /// Marks the span in which the run was steady, with its name once.
    fn bands(&self, named: bool) -> Vec<Band> {
        let [run] = self.runs else { return Vec::new() };
        let Some(SteadyState::Window(window)) = &run.reported.summary.steady_state else {
            return Vec::new();
        };
        let label = if named { "steady state" } else { "" }.to_owned();
        vec![Band { from: window.from_s, to: window.to_s, label }]
    }
}
