//! Figures over time, for people: counts of classes, the steps, and a chart for each series. The
//! JSON is the series themselves (`runner schema trend`).

use crate::chart::{Band, Rule, Side};
use crate::charts::curve::{self, Line, Plane, Plot, Spot, Style};
use crate::document::{Document, Table, Text};
use crate::label::label;
use model::number;
use trend::{Class, Point, Series, Trends};

/// The classes, the most urgent first.
const ORDER: [Class; 6] = [
    Class::Confirmed,
    Class::Suspected,
    Class::MethodChanged,
    Class::MachineChanged,
    Class::NotEnoughData,
    Class::Unchanged,
];

/// Charts of a page, at most.
const MOST_CHARTS: usize = 60;

/// Rows of a comment, at most.
const MOST_ROWS: usize = 12;

/// The page: the counts, a table of all series, and their charts.
pub fn page(trends: &Trends) -> Document {
    let mut page = Document::new("Trend", "Results over time");
    page.paragraph(Text::plain(counts(trends)));
    let ordered = ordered(trends);
    page.table(table(&ordered));
    let next = next(trends);
    page.list(next.iter().map(|line| Text::marked(line)).collect());
    let drawn = ordered.iter().filter(|series| series.points.len() > 1);
    for (number, series) in drawn.clone().take(MOST_CHARTS).enumerate() {
        page.chart(chart(series, number));
    }
    let left_out = drawn.count().saturating_sub(MOST_CHARTS);
    if left_out > 0 {
        page.say(&format!(
            "{} more series have no chart here; choose some with `--figure` or `--model`.",
            number::count(left_out as u64)
        ));
    }
    page
}

/// A comment of a few lines: the counts, and the series that need attention.
pub fn comment(trends: &Trends) -> String {
    let mut page = Document::new("Trend", "Results over time");
    page.paragraph(Text::plain(counts(trends)));
    let mut ordered = ordered(trends);
    ordered.retain(|series| !matches!(series.class, Class::Unchanged | Class::NotEnoughData));
    let left_out = ordered.len().saturating_sub(MOST_ROWS);
    ordered.truncate(MOST_ROWS);
    page.table(table(&ordered));
    if left_out > 0 {
        page.say(&format!("{left_out} more series: `runner trend` lists all."));
    }
    page.markdown_section(3)
}

fn ordered(trends: &Trends) -> Vec<&Series> {
    let mut series: Vec<&Series> = trends.series.iter().collect();
    series.sort_by_key(|series| ORDER.iter().position(|class| *class == series.class));
    series
}

/// The number of series in each class, in a line.
fn counts(trends: &Trends) -> String {
    let parts = ORDER.iter().filter_map(|class| {
        let count = trends.series.iter().filter(|series| series.class == *class).count();
        (count > 0).then(|| format!("{count} {}", class.name().replace('-', " ")))
    });
    format!("{} series: {}.", trends.series.len(), parts.collect::<Vec<_>>().join(", "))
}

fn table(series: &[&Series]) -> Table {
    let mut table = Table::new(["Class", "Figure", "Series", "Version", "Value", "Reason"]);
    table.numeric = Some(4..5);
    for series in series {
        let newest = series.points.last();
        table.row([
            series.class.name().replace('-', " "),
            label(&series.figure),
            series.key.label(),
            newest.map(|point| point.version.clone()).unwrap_or_default(),
            newest.map(value).unwrap_or_default(),
            series.reason(),
        ]);
    }
    table
}

/// The advice that belongs to the classes.
fn next(trends: &Trends) -> Vec<String> {
    let has = |class: Class| trends.series.iter().any(|series| series.class == class);
    let mut lines = Vec::new();
    if has(Class::Suspected) {
        lines.push(
            "A suspected step may be chance or another day: measure both versions again, in turns, with `runner trend --confirm LAB.toml`.".to_owned(),
        );
    }
    if has(Class::MethodChanged) || has(Class::MachineChanged) {
        lines.push(
            "No point is compared across a change of the plan, the plugins, the program or the machine.".to_owned(),
        );
    }
    lines
}

/// A point's value with its interval.
fn value(point: &Point) -> String {
    let short = |value: f64| number::short(value, 4);
    match point.low.zip(point.high) {
        Some((low, high)) => format!("{} ({} to {})", short(point.value), short(low), short(high)),
        None => short(point.value),
    }
}

fn chart(series: &Series, number: usize) -> crate::chart::Chart {
    let place = |version: &str| {
        let at = series.points.iter().position(|point| point.version == version)?;
        Some((at + 1) as f64)
    };
    let spots = |read: &dyn Fn(&Point) -> Option<f64>| -> Vec<Spot> {
        let numbered = series.points.iter().enumerate();
        let placed = numbered.filter_map(|(at, point)| {
            Some(Spot {
                row: point.version.clone(),
                x: (at + 1) as f64,
                y: read(point)?,
                text: value(point),
            })
        });
        placed.collect()
    };
    let line = |label: &str, shape, spots| Line { label: label.to_owned(), shape, spots };
    let changes = series.points.iter().enumerate().filter(|(_, point)| !point.changed.is_empty());
    let rules = changes.map(|(at, point)| {
        let parts: Vec<&str> = point.changed.iter().map(|change| &*change.part).collect();
        Rule::new(Side::X, (at + 1) as f64, format!("other {}", parts.join(", ")))
    });
    let step = series.step.as_ref();
    let step = step.and_then(|step| Some((place(&step.last_good)?, place(&step.first_bad)?)));
    curve::chart(&Plot {
        name: format!("trend-{number}"),
        title: format!("{}: {}", label(&series.figure), series.key.label()),
        note: format!("{}: {}.", series.class.name().replace('-', " "), series.reason()),
        x: "version, by its first run".to_owned(),
        head: "Version".to_owned(),
        panels: vec![Plane {
            y: label(&series.figure),
            is_share: false,
            lines: vec![
                line("ends of the 95 % interval", Style::Connecting, spots(&|point| point.low)),
                line("ends of the 95 % interval", Style::Connecting, spots(&|point| point.high)),
                line("mean of a version's runs", Style::Joined, spots(&|point| Some(point.value))),
            ],
            rules: rules.collect(),
        }],
        bands: step
            .map(|(from, to)| Band { from, to, label: series.class.name().to_owned() })
            .into_iter()
            .collect(),
        is_named: false,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use trend::{Key, Method, Run, judge};

    fn runs(days: usize, change: impl Fn(usize, &mut Run)) -> Vec<Run> {
        let run = |day: usize| {
            let mut run = Run {
                started: format!("2026-01-{:02}T03:04:05Z", day + 1),
                version: Some(format!("0.{day}.0")),
                method: Method { program: Some("1".into()), ..Method::default() },
                value: 100.0 + [0.0, 1.0, -1.0, 0.5][day % 4],
                interval: Some([98.0, 103.0]),
                ..Run::default()
            };
            change(day, &mut run);
            run
        };
        (0..days).map(run).collect()
    }

    pub(crate) fn trends() -> Trends {
        let key = |model: &str| Key { model: Some(model.into()), ..Key::default() };
        let step = runs(12, |day, run| run.value *= if day > 9 { 1.1 } else { 1.0 });
        let level = runs(12, |_, _| ());
        let other = runs(12, |day, run| {
            run.machine = (day == 11).then(|| "another".into());
        });
        let judged = |model: &str, runs: &[Run]| judge(key(model), "ttft.p50", "ms", runs, &[]);
        Trends { series: vec![judged("a", &level), judged("b", &step), judged("c", &other)] }
    }

    #[test]
    fn the_answer_comes_first() {
        let trends = trends();
        let text = page(&trends).text();
        let first = text.lines().nth(2).unwrap_or_default();
        assert!(
            text.contains("3 series: 1 suspected, 1 machine changed, 1 unchanged."),
            "{first}: {text}"
        );
        assert!(text.contains("between 0.8.0 and 0.11.0") || text.contains("0.11.0"), "{text}");
        let place = |words: &str| text.find(words).unwrap();
        assert!(place("suspected") < place("machine: unknown before, another since"));
        assert!(text.contains("runner trend --confirm"), "{text}");
    }

    #[test]
    fn a_comment_has_few_lines() {
        let mut many = trends();
        let step = many.series[1].clone();
        many.series.extend(std::iter::repeat_n(step, 40));
        let comment = comment(&many);
        assert!(comment.lines().count() <= 22, "{comment}");
        assert!(
            comment.contains("30 more series") && !comment.contains("| unchanged"),
            "{comment}"
        );
    }

    #[test]
    fn a_chart_marks_changes_and_the_step() {
        let page = page(&trends());
        let charts: Vec<_> = page.charts().collect();
        assert_eq!(charts.len(), 3);
        assert_eq!(charts[0].panels[0].bands[0].label, "suspected");
        assert_eq!(charts[1].panels[0].rules[0].label, "other machine");
        assert!(charts[2].panels[0].rules.is_empty());
    }
}
