//! Throughput and latency over the load: scenarios that differ only in their load, as points of one
//! curve.

use super::{Tables, over};
use crate::expand::{Trial, TrialId};
use crate::study::{OfLoad, Scenario};
use result::figure::{Better, Figure};
use search::sweep::{Place, Point, curve};

/// Throughput and latency of every trial at several loads.
#[model::apply(model::document!)]
pub struct LoadCurves {
    /// The common beginning of the scenarios' names.
    pub name: String,
    /// The quantity that their load is counted in.
    pub load: search::Load,
    /// The figure to maximize and the figure to minimize.
    pub figures: [String; 2],
    /// A curve for each trial that was measured at two loads or more. A place is on the front where
    /// no place of any trial beats it.
    pub lines: Vec<LoadLine>,
}

/// A trial at several loads.
#[model::apply(model::document!)]
pub struct LoadLine {
    /// The trial.
    pub trial: TrialId,
    /// The trial's name in tables.
    pub label: String,
    /// Its curve.
    pub curve: search::sweep::Curve,
}

/// The figures of a curve where the objective names no others.
const FIGURES: [&str; 2] = ["throughput.output-tokens-per-s", "tpot.mean"];

impl Tables<'_> {
    /// The curves of every group of scenarios that differ only in their load.
    pub fn curves(&self) -> Vec<LoadCurves> {
        let mut groups: Vec<Vec<(&Scenario, &OfLoad)>> = Vec::new();
        for scenario in self.sides.scenarios {
            let Some(load) = &scenario.load else { continue };
            let same = |(_, other): &(&Scenario, &OfLoad)| {
                other.kind == load.kind && other.besides == load.besides
            };
            match groups.iter_mut().find(|group| same(&group[0])) {
                Some(group) => group.push((scenario, load)),
                None => groups.push(vec![(scenario, load)]),
            }
        }
        groups.retain(|group| group.len() > 1);
        let curves = groups.iter().filter_map(|group| self.curve(group));
        curves.filter(|curves| !curves.lines.is_empty()).collect()
    }

    fn curve(&self, group: &[(&Scenario, &OfLoad)]) -> Option<LoadCurves> {
        let figures = self.throughput_and_latency()?;
        let lines = self.study.trials.iter().filter_map(|trial| {
            let points: Vec<Point> = (group.iter())
                .flat_map(|(scenario, load)| self.points(trial, scenario, load, &figures))
                .collect();
            let curve = curve(&points);
            (curve.places.len() > 1).then(|| LoadLine {
                trial: trial.id.clone(),
                label: self.sides.lab.label(trial),
                curve,
            })
        });
        let mut lines: Vec<LoadLine> = lines.collect();
        front(&mut lines);
        let names: Vec<&str> = group.iter().map(|(scenario, _)| scenario.name.as_str()).collect();
        Some(LoadCurves {
            name: common(&names),
            load: group[0].1.kind,
            figures: figures.map(|figure| figure.to_string()),
            lines,
        })
    }

    /// The figures of the objective's front, if one is a throughput and one a latency.
    fn throughput_and_latency(&self) -> Option<[Figure; 2]> {
        if let Some([a, b]) = self.sides.lab.objective.as_ref().map(|objective| &objective.pareto) {
            match (a.better(), b.better()) {
                (Better::Higher, Better::Lower) => return Some([a.clone(), b.clone()]),
                (Better::Lower, Better::Higher) => return Some([b.clone(), a.clone()]),
                _ => {}
            }
        }
        let [a, b] = FIGURES.map(|name| name.parse().ok());
        Some([a?, b?])
    }

    /// The runs of a trial at a load, a point for each.
    fn points(
        &self,
        trial: &Trial,
        scenario: &Scenario,
        load: &OfLoad,
        figures: &[Figure; 2],
    ) -> Vec<Point> {
        let runs = self.sides.runs(&trial.id, scenario, &self.rounds).into_iter();
        let point = |(run, repeat)| {
            let [throughput, latency] = figures.each_ref().map(|figure| {
                let value = over(&[run], figure).map(|spread| spread.mean);
                value.filter(|value| value.is_finite())
            });
            Point { at: load.at, repeat, valid: true, throughput, latency }
        };
        runs.zip(1..).map(point).collect()
    }
}

/// Marks the places that no place of any line beats.
fn front(lines: &mut [LoadLine]) {
    let figures = |place: &Place| Some((place.throughput?.mean, place.latency?.mean));
    let all: Vec<(f64, f64)> =
        lines.iter().flat_map(|line| line.curve.places.iter().filter_map(figures)).collect();
    let beats = |one: &(f64, f64), own: (f64, f64)| one.0 >= own.0 && one.1 <= own.1 && *one != own;
    for place in lines.iter_mut().flat_map(|line| &mut line.curve.places) {
        place.on_front = figures(place).map(|own| !all.iter().any(|one| beats(one, own)));
    }
}

/// The common beginning of names, such as `chat` of `chat-1` and `chat-16`; else all names.
fn common(names: &[&str]) -> String {
    let first = names.first().copied().unwrap_or_default();
    let shared = first.char_indices().take_while(|(at, c)| {
        let with = &first[..at + c.len_utf8()];
        names.iter().all(|name| name.starts_with(with))
    });
    let end = shared.last().map_or(0, |(at, c)| at + c.len_utf8());
    // The shared beginning of two numbers is no name.
    let name = first[..end].trim_end_matches(|c: char| !c.is_alphabetic());
    match name {
        "" => names.join(", "),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_a_curve_by_the_common_part_of_its_scenarios() {
        for (names, common) in [
            (["chat-1", "chat-16"], "chat"),
            (["chat at 10 req/s", "chat at 12 req/s"], "chat at"),
            (["slow", "fast"], "slow, fast"),
        ] {
            assert_eq!(super::common(&names), common);
        }
    }
}
