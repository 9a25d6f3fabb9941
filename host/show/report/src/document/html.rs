//! A page as one HTML file. Templates are constants, and [`Html::put`] escapes every value, so
//! foreign text is never an element.

mod frame;

use std::fmt::Display;

#[cfg(test)]
pub(super) use frame::source;

use super::slug::Slugs;
use super::{Block, Cell, Document, Figure, Fit, Heading, Span, Table, Text, Tone, headings};
use crate::chart::{Chart, Form, Look, Side, Tone as Mark, Width, escape, svg, swatch};
use result::finding::Finding;
use result::metric::Metric;

const TAKEN: [&str; 4] = ["main", "theme", "live", "chart-keys"];

struct Html<'d> {
    text: String,
    names: Vec<(&'d Heading, String)>,
    slugs: Slugs,
    /// The headings of the section and of the part of it, which name tables.
    above: [String; 2],
    series: &'d [String],
}

pub(super) fn html(page: &Document) -> String {
    let definitions = definitions(&page.blocks);
    let headings = headings(&page.blocks);
    let mut slugs = Slugs::default();
    for taken in TAKEN {
        slugs.next(taken);
    }
    for (_, metric) in &definitions {
        slugs.next(&format!("def-{}", metric.name));
    }
    for given in headings.iter().filter_map(|heading| heading.name.as_ref()) {
        slugs.next(given);
    }
    let names = headings.into_iter().map(|heading| {
        let name = heading.name.clone().unwrap_or_else(|| slugs.next(&heading.text.to_plain()));
        (heading, name)
    });
    let names = names.collect();
    let series = page.blocks.iter().find_map(|block| match block {
        Block::Series(series) => Some(series.as_slice()),
        _ => None,
    });
    let mut html = Html {
        text: String::new(),
        names,
        slugs,
        above: [page.title.clone(), String::new()],
        series: series.unwrap_or_default(),
    };
    let begins = |block: &Block| matches!(block, Block::Heading(Heading { level: 2, .. }));
    let first = page.blocks.iter().position(begins);
    let (lead, rest) = page.blocks.split_at(first.unwrap_or(page.blocks.len()));
    html.top(&page.title, rest);
    html.put(
        "<div class=\"head\">\n<p class=\"kicker\">{}</p>\n<h1>{}</h1>\n",
        &[&page.kind, &page.title],
    );
    html.blocks(lead);
    html.put("</div>\n", &[]);
    for section in rest.chunk_by(|_, next| !begins(next)) {
        if let [Block::Heading(heading), ..] = section {
            let name = html.name(heading);
            html.put("<section aria-labelledby=\"{}\">\n", &[&name]);
        }
        html.blocks(section);
        html.put("</section>\n", &[]);
    }
    html.bottom(&page.folders, &definitions);
    html.text
}

/// The metrics that a page explains, with its names for them.
fn definitions(blocks: &[Block]) -> Vec<(&'static str, &'static Metric)> {
    let of = |block: &Block| match block {
        Block::Definitions(metrics) => metrics.clone(),
        Block::Details { blocks, .. } => definitions(blocks),
        _ => Vec::new(),
    };
    blocks.iter().flat_map(of).collect()
}

impl<'d> Html<'d> {
    /// Writes a template with a value for each `{}`, escaped.
    fn put(&mut self, template: &'static str, values: &[&dyn Display]) {
        let mut parts = template.split("{}");
        self.text.push_str(parts.next().unwrap_or_default());
        for (part, value) in parts.zip(values) {
            // Lines are kept: code has them.
            let value = value.to_string();
            let lines: Vec<String> = value.split('\n').map(escape).collect();
            self.text.push_str(&lines.join("\n"));
            self.text.push_str(part);
        }
    }

    /// Writes text that was made here: style, script and drawings.
    fn put_own(&mut self, own: &str) {
        self.text.push_str(own);
    }

    /// Writes the attribute for these classes, if there are any.
    fn class(&mut self, classes: &[&str]) {
        let classes: Vec<&str> = classes.iter().copied().filter(|c| !c.is_empty()).collect();
        if !classes.is_empty() {
            self.put(" class=\"{}\"", &[&classes.join(" ")]);
        }
    }

    fn name(&self, heading: &Heading) -> String {
        let mut names = self.names.iter();
        let found = names.find(|(own, _)| std::ptr::eq(*own, heading));
        found.map_or_else(String::new, |(_, name)| name.clone())
    }

    fn blocks(&mut self, blocks: &'d [Block]) {
        let is_chart = |block: &Block| matches!(block, Block::Chart(_));
        for group in blocks.chunk_by(|one, next| is_chart(one) && is_chart(next)) {
            if group.iter().any(is_chart) {
                self.put("<div class=\"charts\">\n", &[]);
                group.iter().for_each(|block| self.block(block));
                self.put("</div>\n", &[]);
            } else {
                group.iter().for_each(|block| self.block(block));
            }
        }
    }

    fn block(&mut self, block: &'d Block) {
        match block {
            Block::Heading(heading) => {
                let words = heading.text.to_plain();
                match heading.level {
                    2 => self.above = [words, String::new()],
                    _ => self.above[1] = format!(": {words}"),
                }
                let name = self.name(heading);
                self.put("<h{} id=\"{}\">", &[&heading.level, &name]);
                self.spans(&heading.text);
                self.put("</h{}>\n", &[&heading.level]);
            }
            Block::Contents => {}
            Block::Paragraph(text) => self.within("<p>", text, "</p>\n"),
            Block::Remark(text) => self.within("<p class=\"soft\">", text, "</p>\n"),
            Block::List(items) => self.all("<ul>", items, "</ul>\n", |html, item| {
                html.within("<li>", item, "</li>");
            }),
            Block::Code { text, .. } => self.put("<pre tabindex=\"0\">{}</pre>\n", &[text]),
            Block::Table(table) => self.table(table),
            Block::Chart(chart) => self.chart(chart),
            Block::Facts(pairs) => {
                self.all("<dl class=\"facts\">", pairs, "</dl>\n", |html, pair| {
                    let template = "<div><dt>{}</dt><dd>{}</dd></div>";
                    html.put(template, &[&pair.name, &pair.value]);
                });
            }
            Block::Pairs(pairs) => {
                self.all("<dl class=\"pairs\">", pairs, "</dl>\n", |html, pair| {
                    html.put("<dt>{}</dt><dd>{}</dd>", &[&pair.name, &pair.value]);
                });
            }
            Block::Figures(figures) => {
                self.all("<div class=\"tiles\">\n", figures, "</div>\n", Self::figure);
            }
            Block::Cards(cards) => {
                self.all("<div class=\"two\">\n", cards, "</div>\n", |html, card| {
                    html.put("<div class=\"card\">", &[]);
                    html.blocks(card);
                    html.put("</div>\n", &[]);
                });
            }
            Block::Details { summary, is_printed, blocks } => {
                self.put("<details", &[]);
                self.class(&[if *is_printed { "printed" } else { "" }]);
                self.put("><summary>{}</summary>\n", &[summary]);
                self.blocks(blocks);
                self.put("</details>\n", &[]);
            }
            Block::Verdict(verdict, title, lines) => {
                self.put("<div class=\"verdict {}\">", &[&verdict.name()]);
                if lines.is_empty() {
                    self.within("<p class=\"line\">", title, "</p>")
                } else {
                    self.within("<h3>", title, "</h3>")
                }
                self.all("", lines, "</div>\n", |html, line| {
                    html.within("<p>", line, "</p>");
                });
            }
            Block::Findings(findings) => {
                self.all("<ul class=\"findings\">\n", findings, "</ul>\n", Self::finding);
            }
            Block::Definitions(metrics) => {
                self.all("<dl class=\"glossary\">\n", metrics, "</dl>\n", |html, (name, metric)| {
                    html.put(
                        "<dt>{} <span class=\"soft\">({})</span></dt><dd>{}. <span class=\"soft\">Equals: {}.</span></dd>\n",
                        &[name, &metric.unit.symbol(), &metric.definition, &metric.equals],
                    );
                });
            }
            Block::Series(names) => {
                self.put(
                    "<fieldset class=\"run-switch\" hidden><legend class=\"unseen\">Runs shown in the charts</legend>",
                    &[],
                );
                for (place, name) in names.iter().enumerate() {
                    self.put("<label><input type=\"checkbox\" checked data-run=\"{}\">", &[&place]);
                    self.mark(Mark::Series(place));
                    self.put("{}</label>", &[name]);
                }
                self.put("</fieldset>\n", &[]);
            }
        }
    }

    fn all<T>(
        &mut self,
        begin: &'static str,
        items: &'d [T],
        end: &'static str,
        each: impl Fn(&mut Self, &'d T),
    ) {
        self.put(begin, &[]);
        items.iter().for_each(|item| each(self, item));
        self.put(end, &[]);
    }

    fn within(&mut self, begin: &'static str, text: &Text, end: &'static str) {
        self.put(begin, &[]);
        self.spans(text);
        self.put(end, &[]);
    }

    fn spans(&mut self, text: &Text) {
        for span in &text.0 {
            match span {
                Span::Plain(text) => self.put("{}", &[text]),
                Span::Strong(text) => self.put("<strong>{}</strong>", &[text]),
                Span::Word(text) => self.put("<em>{}</em>", &[text]),
                Span::Code(text) => self.put("<code>{}</code>", &[text]),
                Span::Link(text, name) => self.put("<a href=\"#{}\">{}</a>", &[name, text]),
                Span::Term(text, metric) => self.put(
                    "<button type=\"button\" class=\"term\" popovertarget=\"def-{}\" aria-describedby=\"def-{}\">{}</button>",
                    &[metric, metric, text],
                ),
                Span::Unit(unit) => self.put(" <span class=\"unit\">{}</span>", &[unit]),
                Span::Change(text, news) => {
                    self.put(" <span", &[]);
                    self.class(&["by", class(*news)]);
                    self.put(">{}", &[text]);
                    if *news != Tone::Plain {
                        self.put("<span class=\"unseen\"> ({})</span>", &[&class(*news)]);
                    }
                    self.put("</span>", &[]);
                }
                Span::Badge(text, worth) => {
                    self.put("<span class=\"badge {}\">{}</span>", &[&worth.name(), text]);
                }
                Span::Mark(place) => self.mark(Mark::Series(*place)),
                Span::Break => self.put("<br>", &[]),
            }
        }
    }

    /// A sample of a mark, as charts have it.
    fn mark(&mut self, tone: Mark) {
        self.put(
            "<svg class=\"chart\" width=\"22\" height=\"12\" viewBox=\"0 0 22 12\" aria-hidden=\"true\"><g class=\"{}\">",
            &[&tone.class()],
        );
        self.put_own(&swatch(tone, 1.0, 6.0));
        self.put("</g></svg>", &[]);
    }

    fn figure(&mut self, figure: &Figure) {
        self.within("<div class=\"card tile\"><p class=\"name\">", &figure.name, "</p>");
        self.put("<p class=\"value\">{}<small>{}</small></p>", &[&figure.value, &figure.unit]);
        for line in &figure.lines {
            self.put("<p>{}</p>", &[line]);
        }
        self.put("</div>\n", &[]);
    }

    fn finding(&mut self, finding: &Finding) {
        // It is a sentence here.
        let mut letters = finding.seen.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        let seen: String = first.chain(letters).collect();
        let severity = finding.severity.name();
        self.put(
            "<li class=\"finding {}\"><p class=\"seen\"><span class=\"badge\">{}</span>{}</p><p><b>Why it matters:</b> {}.</p><p><b>What to do:</b> {}. <span class=\"soft\">({})</span></p></li>\n",
            &[&severity, &severity, &seen, &finding.why, &finding.advice, &finding.id.name()],
        );
    }

    fn table(&mut self, table: &Table) {
        let fit = match table.fit {
            Fit::Stacked => "stack",
            Fit::Narrow => "beside",
            Fit::Scrolled => "",
        };
        let numbers = table.numbers();
        let kind = |at: usize| match numbers.get(at) {
            Some(true) => "",
            _ => "text",
        };
        let above = self.above.concat();
        self.put(
            "<div class=\"card\"><div class=\"scroll {}\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table role=\"table\"><thead role=\"rowgroup\"><tr role=\"row\">",
            &[&fit, &above],
        );
        for (at, head) in table.head.iter().enumerate() {
            self.put("<th scope=\"col\" role=\"columnheader\"", &[]);
            self.class(&[kind(at)]);
            self.put(">{}</th>", &[head]);
        }
        self.put("</tr></thead><tbody role=\"rowgroup\">\n", &[]);
        for row in &table.rows {
            self.put("<tr role=\"row\">", &[]);
            for (at, (Cell { text, tone }, head)) in row.iter().zip(&table.head).enumerate() {
                if at == 0 {
                    self.within("<th scope=\"row\" role=\"rowheader\">", text, "</th>");
                } else {
                    // A role promises something to read out.
                    self.put(
                        if text.to_plain().is_empty() {
                            "<td data-head=\"{}\""
                        } else {
                            "<td role=\"cell\" data-head=\"{}\""
                        },
                        &[head],
                    );
                    self.class(&[kind(at), class(*tone)]);
                    self.within(">", text, "</td>");
                }
            }
            self.put("</tr>\n", &[]);
        }
        self.put("</tbody></table></div></div>\n", &[]);
    }
}

/// The class of good and bad news, which is a word for them too.
fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "better",
        Tone::Bad => "worse",
    }
}

impl Html<'_> {
    /// A chart, drawn for every width and scale, with its data.
    fn chart(&mut self, chart: &Chart) {
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
