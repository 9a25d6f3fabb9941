//! A sweep as a page: the knee and the Pareto front, the curve, and every load and run.

use super::{COLUMNS, Sweep, SweptRun, knee_words, shown};
use crate::chart::{Rule, Side};
use crate::charts::curve::{Line, Plane, Plot, Spot, Style, chart, front};
use crate::document::{Cell, Document, Table, Text, Tone};
use crate::label::label;
use crate::search::{amount, short, unit};
use crate::workload::{self, Workload};
use result::finding::Verdict;
use search::sweep::{At, Curve, Knee, Mean, Place};

/// The page of a sweep; its title is the workload's name, or the given name without a run.
pub fn page(sweep: &Sweep, name: &str, workload: Option<&Workload>) -> Document {
    let curve = sweep.result().curve;
    let mut page = Document::new("Sweep", title(sweep, name, workload));
    let left = sweep.planned.len().saturating_sub(sweep.runs.len());
    if left > 0 {
        page.paragraph(Text::strong(format!(
            "This sweep is not complete: {left} of {} runs are not made yet.",
            sweep.planned.len()
        )));
    }
    page.heading(2, "Result");
    page.chart(plane(sweep, &curve));
    page.list(result(sweep, &curve));
    if let Some(workload) = workload {
        let workload = workload.clone().without_load();
        workload::say(&mut page, "Workload and machines", &[("", &workload)]);
    }
    page.heading(2, "Over the load");
    page.chart(over_load(sweep, &curve));
    page.table(places(sweep, &curve));
    page.say(
        "± is half of a 95 % interval over repeats. Invalid runs take no part; suspect runs do. A load is on the Pareto front \
         where no other has as much throughput and as little latency.",
    );
    page.heading(2, "Runs");
    page.table(runs(sweep));
    page
}

fn title(sweep: &Sweep, name: &str, workload: Option<&Workload>) -> String {
    let Some(workload) = workload else { return name.to_owned() };
    let loads = || sweep.planned.iter().map(|at| at.number());
    let least = loads().fold(f64::INFINITY, f64::min);
    let most = loads().fold(0.0, f64::max);
    let most = if most.is_finite() { short(most) } else { "no limit".to_owned() };
    if short(least) == most {
        format!("{} at {most} {}", workload.name, unit(sweep.load))
    } else {
        format!("{} at {} to {most} {}", workload.name, short(least), unit(sweep.load))
    }
}

fn result(sweep: &Sweep, curve: &Curve) -> Vec<Text> {
    let mut lines: Vec<Text> = knee_words(sweep, curve)
        .into_iter()
        .map(|knee| Text::strong("Knee: ").then(knee))
        .collect();
    let best = |of: fn(&Place) -> Option<Mean>| {
        let known = curve.places.iter().filter_map(|place| Some((place, of(place)?.mean)));
        known.max_by(|(_, a), (_, b)| a.total_cmp(b))
    };
    if let Some((place, most)) = best(|place| place.throughput) {
        lines.push(Text::strong("Most: ").then(format!(
            "{} {} at {}",
            label(&sweep.throughput),
            short(most),
            amount(sweep.load, place.at.number())
        )));
    }
    let on_front: Vec<String> = (curve.places.iter())
        .filter(|place| place.on_front == Some(true))
        .map(|place| short(place.at.number()))
        .collect();
    let doubted = counts(sweep.runs.iter(), &[Verdict::Suspect, Verdict::Invalid]);
    let doubted: Vec<String> =
        doubted.iter().map(|(many, word)| format!("{many} {word}")).collect();
    if !doubted.is_empty() {
        let of = sweep.runs.len();
        lines.push(Text::strong("Doubts: ").then(format!(
            "of {of} runs, {}; the page of each run says why",
            doubted.join(" and ")
        )));
    }
    if !on_front.is_empty() {
        lines.push(Text::strong("Pareto front: ").then(format!(
            "{} {}",
            on_front.join(", "),
            unit(sweep.load)
        )));
    }
    lines
}

pub(super) fn mean(mean: Mean) -> String {
    match mean.margin {
        Some(margin) => format!("{} ± {}", short(mean.mean), short(margin)),
        None => short(mean.mean),
    }
}

/// A load as a point of throughput and latency.
pub fn spot(sweep: [&str; 2], load: search::Load, place: &Place) -> Option<Spot> {
    let (throughput, latency) = (place.throughput?, place.latency?);
    Some(Spot {
        row: amount(load, place.at.number()),
        x: throughput.mean,
        y: latency.mean,
        text: format!(
            "{}: {}; {}: {}",
            label(sweep[0]),
            mean(throughput),
            label(sweep[1]),
            mean(latency)
        ),
    })
}

/// The knee as a line across a chart of throughput and latency.
pub fn knee_rule(name: &str, load: search::Load, knee: &Knee) -> Rule {
    Rule::new(Side::X, knee.throughput, format!("{name} at {}", amount(load, knee.at)))
}

fn plane(sweep: &Sweep, curve: &Curve) -> crate::chart::Chart {
    let figures = [sweep.throughput.as_str(), &sweep.latency];
    let of = |place: &Place| spot(figures, sweep.load, place);
    let on_front = curve.places.iter().filter(|place| place.on_front == Some(true));
    let line = Line {
        label: "All loads".to_owned(),
        shape: Style::Joined,
        spots: curve.places.iter().filter_map(of).collect(),
    };
    chart(&Plot {
        name: "throughput-latency".to_owned(),
        title: "Throughput and latency".to_owned(),
        note: "One point for each load, joined from the lowest to the highest; further right and further down is better."
            .to_owned(),
        x: label(&sweep.throughput),
        head: "Load".to_owned(),
        panels: vec![Plane {
            y: label(&sweep.latency),
            is_share: false,
            lines: [line].into_iter().chain(front(on_front.filter_map(of))).collect(),
            rules: curve
                .knee
                .iter()
                .map(|knee| knee_rule("knee", sweep.load, knee))
                .collect(),
        }],
        bands: Vec::new(),
        is_named: true,
    })
}

fn over_load(sweep: &Sweep, curve: &Curve) -> crate::chart::Chart {
    let panel = |figure: &str, of: fn(&Place) -> Option<Mean>| {
        let spots = curve.places.iter().filter_map(|place| {
            let value = of(place)?;
            Some(Spot {
                row: amount(sweep.load, place.at.number()),
                x: place.at.number(),
                y: value.mean,
                text: mean(value),
            })
        });
        Plane {
            y: label(figure),
            is_share: false,
            lines: vec![Line {
                label: label(figure),
                shape: Style::Joined,
                spots: spots.collect(),
            }],
            rules: curve.knee.iter().map(|knee| Rule::new(Side::X, knee.at, "knee")).collect(),
        }
    };
    let unlimited = if sweep.planned.contains(&At::Unlimited) {
        " The load without a limit has no place on this axis."
    } else {
        ""
    };
    chart(&Plot {
        name: "over-load".to_owned(),
        title: "Over the load".to_owned(),
        note: format!(
            "Beyond the knee, more load brings latency and little throughput.{unlimited}"
        ),
        x: format!("Load ({})", unit(sweep.load)),
        head: "Load".to_owned(),
        panels: vec![
            panel(&sweep.throughput, |place| place.throughput),
            panel(&sweep.latency, |place| place.latency),
        ],
        bands: Vec::new(),
        is_named: false,
    })
}

fn places(sweep: &Sweep, curve: &Curve) -> Table {
    let mut table = Table::new([
        format!("Load ({})", unit(sweep.load)),
        label(&sweep.throughput),
        label(&sweep.latency),
        "Verdicts".to_owned(),
        "On the Pareto front".to_owned(),
    ]);
    for place in &curve.places {
        table.row([
            short(place.at.number()),
            place.throughput.map(mean).unwrap_or_default(),
            place.latency.map(mean).unwrap_or_default(),
            verdicts(sweep, place.at),
            if place.on_front == Some(true) { "yes" } else { "" }.to_owned(),
        ]);
    }
    table
}

/// The number of runs with each of the verdicts that a run has, and the verdict's name.
fn counts<'a>(
    runs: impl Iterator<Item = &'a SweptRun> + Clone,
    verdicts: &[Verdict],
) -> Vec<(usize, &'static str)> {
    let counts = verdicts.iter().map(|verdict| {
        (runs.clone().filter(|run| run.verdict == *verdict).count(), verdict.name())
    });
    counts.filter(|(number, _)| *number > 0).collect()
}

/// The verdicts of the runs at a load: `valid`, `1 valid, 2 suspect`.
fn verdicts(sweep: &Sweep, at: At) -> String {
    let runs = sweep.runs.iter().filter(|run| run.at == at);
    let counts = counts(runs, &[Verdict::Valid, Verdict::Suspect, Verdict::Invalid]);
    match counts.as_slice() {
        [(_, word)] => (*word).to_owned(),
        several => {
            let several = several.iter().map(|(many, word)| format!("{many} {word}"));
            several.collect::<Vec<_>>().join(", ")
        }
    }
}

fn runs(sweep: &Sweep) -> Table {
    let head = [format!("Load ({})", unit(sweep.load)), "Repeat".to_owned()];
    let is_known = |name: &str| sweep.runs.iter().any(|run| run.figures.contains_key(name));
    let known: Vec<&str> =
        (COLUMNS.iter().map(|(name, _)| *name)).filter(|name| is_known(name)).collect();
    let figures = known.iter().map(|name| label(name));
    let last = ["Verdict".to_owned(), "Folder".to_owned()];
    let mut table = Table::new(head.into_iter().chain(figures).chain(last));
    for run in &sweep.runs {
        let first = [short(run.at.number()), run.repeat.to_string()].map(Cell::from);
        let figures = known.iter().map(|name| {
            let value = run.figures.get(*name);
            Cell::from(value.map(|value| shown(name, *value)).unwrap_or_default())
        });
        let verdict = Cell {
            text: run.verdict_words().into(),
            tone: match run.verdict {
                Verdict::Invalid => Tone::Bad,
                _ => Tone::Plain,
            },
        };
        let last = [verdict, run.folder.as_str().into()];
        table.row(first.into_iter().chain(figures).chain(last));
    }
    table
}
