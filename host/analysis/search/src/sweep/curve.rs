//! The curve of a sweep: its runs together.
//!
//! **The knee** is where throughput stops following the load: the corner of the two straight lines
//! that fit the throughput over the load best (`statistics::corner`). A corner is a knee only if
//! throughput rises less than half as fast beyond it. The two lines must also leave at most a
//! quarter of the squares that one line leaves. Latency takes no part: beyond capacity it depends
//! on the length of a run. Methods that scale a curve to its ends, such as Kneedle (Satopää et al.
//! 2011), would move the knee with the highest load that somebody tried.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statistics::corner::{corner, line};
use statistics::{mean_if_any, student};

use super::At;

/// Loads that a knee takes at least: two on either side of the corner, and one that could say
/// otherwise.
const FEWEST: usize = 5;
/// Share of one line's squares that two lines may leave.
const BETTER: f64 = 0.25;
/// The share of the slope below the knee that the slope beyond it must stay under.
const FLATTER: f64 = 0.5;

/// The result of one run of a sweep.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Point {
    /// Its load.
    pub at: At,
    /// The number of the repeat, from 1.
    pub repeat: u32,
    /// True if the run is valid.
    pub valid: bool,
    /// Its throughput, the more the better; absent if it was not measured.
    pub throughput: Option<f64>,
    /// Its latency, the less the better; absent if it was not measured, or is infinite because
    /// requests failed.
    pub latency: Option<f64>,
}

/// The mean of a figure over the repeats of a load.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The number of repeats.
    pub runs: u32,
    /// Half the width of its 95 % interval, by Student's distribution; absent for a single run.
    pub margin: Option<f64>,
}

/// A load of the curve.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Place {
    /// The load.
    pub at: At,
    /// Throughput over its valid runs; absent if none has it.
    pub throughput: Option<Mean>,
    /// Latency over its valid runs; absent if none has it.
    pub latency: Option<Mean>,
    /// Runs that are not valid, and so count nowhere.
    pub invalid: u32,
    /// True if it is on the Pareto front: no other load has as much throughput and as little
    /// latency, and more of one. Absent if it lacks either figure.
    pub on_front: Option<bool>,
}

/// The knee of a curve.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Knee {
    /// The load at which the two lines meet.
    pub at: f64,
    /// The throughput there.
    pub throughput: f64,
    /// The rise of throughput with a unit of load below it.
    pub slope_below: f64,
    /// The rise above it.
    pub slope_above: f64,
}

/// The reason why a curve has no knee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoKnee {
    /// Fewer than five loads with a limit have a throughput.
    TooFewLoads,
    /// Throughput follows the load as far as it was raised, or bends nowhere in particular.
    NoCorner,
}

/// The curve of a sweep.
#[model::apply(model::document!)]
pub struct Curve {
    /// Every load, from the lowest.
    pub places: Vec<Place>,
    /// The knee; absent if there is none.
    pub knee: Option<Knee>,
    /// The reason why there is none.
    pub no_knee: Option<NoKnee>,
}

/// The curve of the runs of a sweep, in any order.
pub fn curve(points: &[Point]) -> Curve {
    let mut points = points.to_vec();
    points.sort_by(|a, b| (a.at.number().total_cmp(&b.at.number())).then(a.repeat.cmp(&b.repeat)));
    let mut places: Vec<Place> = points.chunk_by(|a, b| a.at == b.at).map(place).collect();
    let figures: Vec<Option<(f64, f64)>> =
        (places.iter()).map(|own| Some((own.throughput?.mean, own.latency?.mean))).collect();
    for (place, own) in places.iter_mut().zip(&figures) {
        place.on_front =
            own.map(|own| !figures.iter().flatten().any(|other| dominates(*other, own)));
    }
    let rising: Vec<(f64, f64)> = (places.iter())
        .filter(|place| place.at != At::Unlimited)
        .filter_map(|place| Some((place.at.number(), place.throughput?.mean)))
        .collect();
    let (knee, no_knee) = match knee(&rising) {
        Ok(knee) => (Some(knee), None),
        Err(why) => (None, Some(why)),
    };
    Curve { places, knee, no_knee }
}

/// True if one has as much throughput and as little latency as another, and more of one.
fn dominates(one: (f64, f64), other: (f64, f64)) -> bool {
    one.0 >= other.0 && one.1 <= other.1 && one != other
}

fn place(runs: &[Point]) -> Place {
    let valid = runs.iter().filter(|run| run.valid);
    let of = |figure: fn(&Point) -> Option<f64>| {
        let values = valid.clone().filter_map(figure).filter(|value| value.is_finite());
        mean(&values.collect::<Vec<_>>())
    };
    Place {
        at: runs[0].at,
        throughput: of(|run| run.throughput),
        latency: of(|run| run.latency),
        invalid: runs.iter().filter(|run| !run.valid).count() as u32,
        on_front: None,
    }
}

fn mean(values: &[f64]) -> Option<Mean> {
    Some(Mean {
        mean: mean_if_any(values)?,
        runs: values.len() as u32,
        margin: student::margin(values, 0.05),
    })
}

fn knee(points: &[(f64, f64)]) -> Result<Knee, NoKnee> {
    if points.len() < FEWEST {
        return Err(NoKnee::TooFewLoads);
    }
    let corner = corner(points).ok_or(NoKnee::NoCorner)?;
    let [slope_below, slope_above] = corner.slopes;
    let is_bent = slope_below > 0.0 && slope_above < FLATTER * slope_below;
    if !is_bent || corner.squares > BETTER * line(points) {
        return Err(NoKnee::NoCorner);
    }
    Ok(Knee { at: corner.at, throughput: corner.level, slope_below, slope_above })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at: f64, throughput: f64, latency: f64) -> Point {
        Point {
            at: At::Load(at),
            repeat: 1,
            valid: true,
            throughput: Some(throughput),
            latency: Some(latency),
        }
    }

    #[test]
    fn the_knee_is_where_throughput_stops_following_the_load() {
        let rates = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
        let points: Vec<Point> = (rates.iter())
            .map(|rate| point(*rate, 100.0 * rate.min(11.0), 50.0 + rate * rate))
            .collect();
        let knee = curve(&points).knee.unwrap();
        assert!((knee.at - 11.0).abs() < 0.2, "{knee:?}");
        assert!((knee.throughput - 1100.0).abs() < 20.0 && knee.slope_above.abs() < 1.0);
        // A higher load at the end moves nothing.
        let mut more = points.clone();
        more.push(point(500.0, 1100.0, 9000.0));
        let moved = curve(&more).knee.unwrap();
        assert!((moved.at / knee.at - 1.0).abs() < 0.02, "{moved:?}");
        // Nor do other units.
        let scaled: Vec<Point> = (points.iter())
            .map(|own| Point { throughput: own.throughput.map(|own| own * 1e6), ..*own })
            .collect();
        let scaled = curve(&scaled).knee.unwrap();
        assert!((scaled.at - knee.at).abs() < 1e-6);
    }

    #[test]
    fn a_curve_without_a_corner_has_no_knee() {
        let straight: Vec<Point> = (1..9).map(|at| point(at.into(), f64::from(at), 1.0)).collect();
        assert_eq!(curve(&straight).no_knee, Some(NoKnee::NoCorner));
        let few: Vec<Point> = (1..5).map(|at| point(at.into(), 3.0, 1.0)).collect();
        assert_eq!(curve(&few).no_knee, Some(NoKnee::TooFewLoads));
        let rises: Vec<Point> =
            (1..9).map(|at| point(at.into(), f64::from(at * at), 1.0)).collect();
        assert_eq!(curve(&rises).knee, None, "it becomes steeper");
        assert_eq!(curve(&[]).places, []);
    }

    #[test]
    fn the_front_has_what_nothing_is_better_than() {
        let points = [
            point(1.0, 10.0, 5.0),
            point(2.0, 20.0, 6.0),
            // Slower than the last in both.
            point(4.0, 19.0, 8.0),
            point(8.0, 25.0, 9.0),
            // As much throughput, later.
            point(16.0, 25.0, 90.0),
        ];
        let front: Vec<f64> = (curve(&points).places.iter())
            .filter(|place| place.on_front == Some(true))
            .map(|place| place.at.number())
            .collect();
        assert_eq!(front, [1.0, 2.0, 8.0]);
    }

    #[test]
    fn what_is_absent_or_not_valid_is_not_zero() {
        let absent = Point { latency: None, ..point(2.0, 99.0, 0.0) };
        let invalid = Point { valid: false, ..point(3.0, 999.0, 0.1) };
        let unlimited = Point { at: At::Unlimited, ..point(1.0, 40.0, 70.0) };
        let again = Point { repeat: 2, ..point(1.0, 14.0, 7.0) };
        let curve = curve(&[unlimited, again, absent, invalid, point(1.0, 10.0, 5.0)]);
        let [one, two, three, last] = &curve.places[..] else {
            panic!("{curve:?}");
        };
        let mean = one.throughput.unwrap();
        assert_eq!((mean.mean, mean.runs), (12.0, 2));
        // Student's quantile of one degree of freedom times an error of 2.
        assert!((mean.margin.unwrap() - 25.41).abs() < 0.01);
        assert_eq!((two.latency, two.on_front), (None, None));
        assert_eq!(two.throughput.unwrap().margin, None);
        assert_eq!((three.throughput, three.latency, three.invalid), (None, None, 1));
        assert_eq!(three.on_front, None);
        assert_eq!((last.at, last.on_front), (At::Unlimited, Some(true)));
        let json = serde_json::to_string(&curve).unwrap();
        assert!(!json.contains("null"), "{json}");
        assert_eq!(serde_json::from_str::<Curve>(&json).unwrap(), curve);
    }
}
