//! The levels of a single page, for display during a run.

use crate::names::{Name, Source, sources};
use crate::page;
use crate::pieces::Fold;

/// A page's present values; a level that it does not have is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Levels {
    pub running: Option<f64>,
    /// Requests that wait for the scheduler.
    pub waiting: Option<f64>,
    pub kv_usage: Option<f64>,
}

pub fn levels(text: &str) -> Levels {
    let page = page::read(text);
    let of = |name: Name| {
        sources(name).iter().find_map(|source| {
            let fold = match source {
                Source::Sum(_) => Fold::Sum,
                Source::Largest(_) => Fold::Largest,
                _ => return None,
            };
            let metrics = source.metrics();
            let samples = page.samples.iter();
            let own = samples.filter(|sample| metrics.contains(&sample.name.as_str()));
            fold.apply(own.map(|sample| sample.value))
        })
    };
    Levels { running: of(Name::Running), waiting: of(Name::Waiting), kv_usage: of(Name::KvUsage) }
}

impl Levels {
    /// The levels of several targets: requests are added up, and the fullest cache counts. A level
    /// that none of them states is absent.
    pub fn together(all: &[Levels]) -> Levels {
        let fold = |fold: Fold, of: fn(&Levels) -> Option<f64>| {
            let known: Option<Vec<f64>> = all.iter().map(of).collect();
            fold.apply(known?.into_iter())
        };
        Levels {
            running: fold(Fold::Sum, |levels| levels.running),
            waiting: fold(Fold::Sum, |levels| levels.waiting),
            kv_usage: fold(Fold::Largest, |levels| levels.kv_usage),
        }
    }
}
