//! The charts of a page: the drawings of each, its keys, and its data as a table.

use super::Html;
use crate::chart::{Chart, Form, Look, Side, Width, svg};

impl Html<'_> {
    /// A chart, drawn for every width and scale, with its data.
    pub(super) fn chart(&mut self, chart: &Chart) {
        let name = self.slugs.next(&chart.name);
        let form = match chart.form {
            Form::Half => "half",
            Form::Full => "full",
        };
        let log_first = chart.log.is_some_and(|log| log.first);
        self.put(
            "<figure class=\"chart-box {}{}\" id=\"{}\"",
            &[&form, &if log_first { " log" } else { "" }, &name],
        );
        // The switch of runs hides keys by their place.
        let labels = chart.keys.iter().map(|key| &key.label);
        if !self.series.is_empty() && labels.eq(self.series) {
            self.put(" data-runs", &[]);
        }
        self.put(
            ">\n<figcaption><div class=\"chart-top\"><h3 id=\"{}-head\">{}</h3>",
            &[&name, &chart.title],
        );
        if let Some(log) = chart.log {
            let axis = match log.side {
                Side::X => "horizontal",
                Side::Y => "vertical",
            };
            self.put(
                "<div class=\"scales\" role=\"group\" aria-label=\"Scale of the {} axis\" hidden><button type=\"button\" data-scale=\"linear\" aria-pressed=\"{}\">linear</button><button type=\"button\" data-scale=\"log\" aria-pressed=\"{}\">log</button></div>",
                &[&axis, &!log_first, &log_first],
            );
        }
        self.put("</div><p>{}</p></figcaption>\n", &[&chart.note]);
        if chart.keys.len() > 1 {
            self.put("<ul class=\"legend\" aria-label=\"Shown in the chart\">", &[]);
            for (place, key) in chart.keys.iter().enumerate() {
                self.put("<li class=\"k{}\" data-key=\"{}\">", &[&place, &place]);
                self.mark(key.tone);
                self.put("<span>{}</span></li>", &[&key.label]);
            }
            self.put("</ul>\n", &[]);
        }
        // Where keys step from first: the median of a distribution.
        let mut labels = chart.rows.labels.iter();
        let start = labels.position(|label| label == "P50").unwrap_or(0);
        self.put(
            "<div class=\"plot\" data-snap=\"{}\" data-start=\"{}\" data-label=\"{}-head\">",
            &[&chart.rows.snap.name(), &start, &name],
        );
        let renamed = Chart { name, ..chart.clone() };
        for width in [Width::Wide, Width::Narrow] {
            for log in [false, true] {
                if !log || chart.log.is_some() {
                    let alone = None;
                    self.put_own(&svg(&renamed, Look { width, log, alone }));
                }
            }
        }
        self.put(
            "<div class=\"tip\" hidden></div></div>\n<details><summary>Data of this chart<span class=\"unseen\">: {}</span></summary>\n\
             <div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"Data: {}\"><table><thead><tr><th scope=\"col\">{}</th>",
            &[&chart.title, &chart.title, &chart.rows.head],
        );
        for (_, column) in chart.columns() {
            self.put("<th scope=\"col\">{}</th>", &[&column.head]);
        }
        self.put("</tr></thead><tbody>\n", &[]);
        for (row, label) in chart.rows.labels.iter().enumerate() {
            self.put("<tr><th scope=\"row\">{}</th>", &[label]);
            for (_, column) in chart.columns() {
                let cell = column.cells.get(row).and_then(Option::as_ref);
                self.put("<td>{}</td>", &[&cell.map_or("", |cell| &cell.text)]);
            }
            self.put("</tr>\n", &[]);
        }
        self.put("</tbody></table></div></details>\n</figure>\n", &[]);
    }
}
