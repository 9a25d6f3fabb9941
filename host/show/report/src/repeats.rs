//! The spread between repeats, as text.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

use super::compared::Shown;
use super::plain;
use compare::repeats::{Repeated, Repeats};
use compare::until::Stopped;

/// The spread of a scenario's repeats as text.
pub fn text(repeats: &Repeats) -> String {
    let heading = format!(
        "== {} runs of {} ==",
        repeats.runs,
        plain(&repeats.scenario)
    );
    if repeats.runs == 0 {
        return format!("{heading}\n\nNo run was measured.\n");
    }
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('-')));
    table.set_header([
        "Figure",
        "Mean",
        "Min",
        "Max",
        "Variation",
        "95 % interval of the mean",
    ]);
    for figure in &repeats.figures {
        table.add_row(cells(figure, repeats.runs));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let stopped = repeats.stopped.iter().flat_map(Stopped::words);
    let stopped: String = stopped.map(|line| format!("\n{line}\n")).collect();
    format!("{heading}\n\n{}\n{stopped}", table.trim_fmt())
}

fn cells(figure: &Repeated, runs: usize) -> Vec<String> {
    let shown = Shown::of(&figure.figure, [figure.max, figure.min]);
    let unit = shown.unit(&figure.unit);
    // A figure that not every run has is no mean over all of them.
    let of = if figure.runs < runs {
        format!(", {} of {runs} runs", figure.runs)
    } else {
        String::new()
    };
    let variation = figure
        .variation_percent
        .map(|percent| format!("{percent:.2} %"));
    let interval = figure
        .interval
        .map(|ends| format!("{} to {}", shown.value(ends.low), shown.value(ends.high)));
    vec![
        format!("{}{unit}{of}", figure.figure),
        shown.value(figure.mean),
        shown.value(figure.min),
        shown.value(figure.max),
        variation.unwrap_or_else(|| "-".to_owned()),
        interval.unwrap_or_else(|| "-".to_owned()),
    ]
}
