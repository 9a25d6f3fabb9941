//! The table of figures: a row for each that was measured.

use super::batch::Batch;
use super::schema::{Head, Type};
use super::{ExportError, Run};
use result::figure::{Figure, WHOLE};
use result::metric;

pub(crate) fn heads() -> Vec<Head> {
    vec![
        Head::run(),
        Head::text("name", "the figure, as thresholds name it"),
        Head::new("value", Type::Number, "", "its value, in the row's unit"),
        Head::text("unit", "its unit; absent for a share or a number"),
        Head::new(
            "lower",
            Type::Number,
            "",
            "lower end of its 95 % interval for other requests of this kind; absent if one run does not show it",
        ),
        Head::new(
            "upper",
            Type::Number,
            "",
            "upper end of its 95 % interval for other requests of this kind; absent if one run does not show it",
        ),
        Head::text("definition", "the definition of its metric, or the name that people use"),
    ]
}

pub(crate) fn write(run: &Run<'_>, batch: &mut Batch<'_>) -> Result<(), ExportError> {
    let summary = &run.reported.summary;
    for figure in Figure::all(summary) {
        let interval = figure.interval(summary);
        batch.text(Some(&run.label));
        batch.text(Some(&figure.to_string()));
        batch.number(figure.read(summary));
        batch.text(Some(figure.unit()).filter(|unit| !unit.is_empty()));
        batch.number(interval.and_then(|bounds| bounds.low));
        batch.number(interval.and_then(|bounds| bounds.high));
        batch.text(definition(&figure));
        batch.end()?;
    }
    Ok(())
}

fn definition(figure: &Figure) -> Option<&'static str> {
    match figure {
        Figure::Of(name, _) => metric::by_name(name).map(|metric| metric.definition),
        Figure::Whole(place) => Some(WHOLE[*place].label),
        Figure::Score(_) => None,
    }
}
