//! Figures over equal spans of time, for charts on the axis of the run.

use model::units::Nanos;

use crate::names::Name;
use crate::pieces::{Curve, Fold, Piece, curve, mean, share, sum, total};
use crate::recording::Recording;

/// The course of a server's figures. Each line has a value for each span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course(pub Vec<Line>);

#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub name: Name,
    /// Means of levels and times, rates of counts, shares; absent where it is not known.
    pub values: Vec<Option<f64>>,
    /// The 99th percentile of times, by span; absent where the server's lowest bucket has it.
    pub high: Option<Vec<Option<f64>>>,
}

impl Course {
    /// The course of each figure that is known at all, over these spans.
    pub fn over(recording: &Recording, spans: &[(Nanos, Nanos)]) -> Self {
        let lines = Name::ALL.iter().filter_map(|name| {
            let (curve, _) = curve(recording, *name)?;
            let line = line(*name, &curve, spans);
            line.values.iter().any(Option::is_some).then_some(line)
        });
        Course(lines.collect())
    }

    pub fn line(&self, name: Name) -> Option<&Line> {
        self.0.iter().find(|line| line.name == name)
    }
}

fn line(name: Name, curve: &Curve, spans: &[(Nanos, Nanos)]) -> Line {
    let each = |of: &dyn Fn((Nanos, Nanos)) -> Option<f64>| -> Vec<Option<f64>> {
        spans.iter().map(|span| of(*span)).collect()
    };
    let folded = |lists: &[Vec<Piece>], fold: Fold, span| {
        let means: Option<Vec<f64>> = lists.iter().map(|pieces| mean(pieces, span)).collect();
        fold.apply(means?.into_iter())
    };
    let (values, high) = match curve {
        Curve::Level(fold, lists) => (each(&|span| folded(lists, *fold, span)), None),
        Curve::Count(lists) => (each(&|span| folded(lists, Fold::Sum, span)), None),
        Curve::Share(part, whole) => {
            (each(&|span| share(total(part, span), total(whole, span))), None)
        }
        Curve::Histogram(bounds, lists) => {
            let means = each(&|span| sum(lists, span).mean());
            let high = each(&|span| sum(lists, span).quantile(bounds, 0.99));
            let is_known = high.iter().any(Option::is_some);
            (means, is_known.then_some(high))
        }
    };
    Line { name, values, high }
}
