//! A page as one HTML file: its head with style and script, a content security policy that allows
//! nothing else, its sections, and the drawings of its charts.
//!
//! Templates are constants, and [`Html::put`] escapes every value, so foreign text is never an
//! element. The script only moves and hides elements.

use std::fmt::Display;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
use sha2::{Digest, Sha256};

use super::slug::Slugs;
use super::{Block, Cell, Document, Figure, Fit, Heading, Pair, Span, Table, Text, Tone, headings};
use crate::chart::{self, Chart, Form, Look, Side, Theme, Width, escape, palette, swatch};
use result::finding::Finding;
use result::metric::Metric;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Names of elements that every page has.
const TAKEN: [&str; 4] = ["main", "theme", "live", "chart-keys"];

/// A page under way.
struct Html<'d> {
    text: String,
    /// The headings with their names.
    names: Vec<(&'d Heading, String)>,
    /// The names that were given.
    slugs: Slugs,
    /// The headings of the section and of the part of it, which name tables.
    above: [String; 2],
    /// The runs that charts show.
    series: &'d [String],
}

/// The page.
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
        let given = heading.name.clone();
        let name = given.unwrap_or_else(|| slugs.next(&heading.text.words()));
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

    /// Writes what was made here: style, script and drawings.
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

    /// The name of a heading.
    fn name(&self, heading: &Heading) -> String {
        let mut names = self.names.iter();
        let found = names.find(|(own, _)| std::ptr::eq(*own, heading));
        found.map_or_else(String::new, |(_, name)| name.clone())
    }

    /// Writes everything above the title.
    fn top(&mut self, title: &str, blocks: &'d [Block]) {
        let style = style();
        self.put(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"generator\" content=\"runner {}\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
             <link rel=\"icon\" href=\"data:,\">\n<style>",
            &[&policy(&style), &env!("CARGO_PKG_VERSION"), &title],
        );
        self.put_own(&style);
        self.put(
            "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the results</a>\n\
             <header class=\"bar\"><div class=\"wide-page\"><nav aria-label=\"Sections\"><ul>\n",
            &[],
        );
        for block in blocks {
            if let Block::Heading(heading) = block
                && heading.level == 2
            {
                let short = heading.short.map(str::to_owned);
                let short = short.unwrap_or_else(|| heading.text.words());
                let name = self.name(heading);
                self.put("<li><a href=\"#{}\">{}</a></li>\n", &[&name, &short]);
            }
        }
        self.put(
            "</ul></nav><button type=\"button\" class=\"button\" id=\"theme\" aria-label=\"Light or dark colours\" hidden>Colours</button></div></header>\n\
             <p id=\"live\" class=\"unseen\" role=\"status\" aria-live=\"polite\"></p>\n\
             <p id=\"chart-keys\" class=\"unseen\">Arrow keys step through the values, Home and End go to the first and the last, Escape leaves.</p>\n\
             <main id=\"main\" class=\"wide-page\" tabindex=\"-1\">\n",
            &[],
        );
    }

    /// Writes everything below the last section, and the definitions that terms show.
    fn bottom(&mut self, folders: &[String], definitions: &[(&str, &'static Metric)]) {
        self.put("<footer><p>", &[]);
        for (place, folder) in folders.iter().enumerate() {
            let before = if place == 0 {
                "Drawn from the records of "
            } else {
                ", "
            };
            self.put("{}<code>{}</code>", &[&before, folder]);
        }
        let (by, says) = match folders.is_empty() {
            true => ("Made", ""),
            false => ("", " and contains no secrets"),
        };
        self.put(
            "{} by runner {}. This page needs no network{}.</p></footer>\n</main>\n",
            &[&by, &env!("CARGO_PKG_VERSION"), &says],
        );
        for (name, metric) in definitions {
            self.put(
                "<div popover id=\"def-{}\" class=\"definition\" role=\"tooltip\"><strong>{}</strong> <span class=\"soft\">({})</span><p>{}.</p><p class=\"soft\">Equals: {}.</p></div>\n",
                &[&metric.name, name, &metric.unit.symbol(), &metric.definition, &metric.equals],
            );
        }
        self.put("<script>", &[]);
        self.put_own(SCRIPT);
        self.put("</script>\n</body>\n</html>\n", &[]);
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
                let words = heading.text.words();
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
            Block::List(items) => {
                self.put("<ul>", &[]);
                for item in items {
                    self.within("<li>", item, "</li>");
                }
                self.put("</ul>\n", &[]);
            }
            Block::Code { text, .. } => self.put("<pre tabindex=\"0\">{}</pre>\n", &[text]),
            Block::Table(table) => self.table(table),
            Block::Chart(chart) => self.chart(chart),
            Block::Facts(pairs) => {
                self.put("<dl class=\"facts\">", &[]);
                for Pair { name, value } in pairs {
                    self.put("<div><dt>{}</dt><dd>{}</dd></div>", &[name, value]);
                }
                self.put("</dl>\n", &[]);
            }
            Block::Pairs(pairs) => {
                self.put("<dl class=\"pairs\">", &[]);
                for Pair { name, value } in pairs {
                    self.put("<dt>{}</dt><dd>{}</dd>", &[name, value]);
                }
                self.put("</dl>\n", &[]);
            }
            Block::Figures(figures) => {
                self.put("<div class=\"tiles\">\n", &[]);
                figures.iter().for_each(|figure| self.figure(figure));
                self.put("</div>\n", &[]);
            }
            Block::Cards(cards) => {
                self.put("<div class=\"two\">\n", &[]);
                for card in cards {
                    self.put("<div class=\"card\">", &[]);
                    self.blocks(card);
                    self.put("</div>\n", &[]);
                }
                self.put("</div>\n", &[]);
            }
            Block::Details {
                summary,
                is_printed,
                blocks,
            } => {
                self.put("<details", &[]);
                self.class(&[if *is_printed { "printed" } else { "" }]);
                self.put("><summary>{}</summary>\n", &[summary]);
                self.blocks(blocks);
                self.put("</details>\n", &[]);
            }
            Block::Verdict(verdict, title, lines) => {
                self.put("<div class=\"verdict {}\">", &[&verdict.name()]);
                self.within("<h3>", title, "</h3>");
                for line in lines {
                    self.within("<p>", line, "</p>");
                }
                self.put("</div>\n", &[]);
            }
            Block::Findings(findings) => {
                self.put("<ul class=\"findings\">\n", &[]);
                findings.iter().for_each(|finding| self.finding(finding));
                self.put("</ul>\n", &[]);
            }
            Block::Definitions(metrics) => {
                self.put("<dl class=\"glossary\">\n", &[]);
                for (name, metric) in metrics {
                    self.put(
                        "<dt>{} <span class=\"soft\">({})</span></dt><dd>{}. <span class=\"soft\">Equals: {}.</span></dd>\n",
                        &[name, &metric.unit.symbol(), &metric.definition, &metric.equals],
                    );
                }
                self.put("</dl>\n", &[]);
            }
            Block::Series(names) => {
                self.put(
                    "<fieldset class=\"run-switch\" hidden><legend class=\"unseen\">Runs shown in the charts</legend>",
                    &[],
                );
                for (place, name) in names.iter().enumerate() {
                    self.put(
                        "<label><input type=\"checkbox\" checked data-run=\"{}\">",
                        &[&place],
                    );
                    self.mark(chart::Tone::Series(place));
                    self.put("{}</label>", &[name]);
                }
                self.put("</fieldset>\n", &[]);
            }
        }
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
                Span::Mark(place) => self.mark(chart::Tone::Series(*place)),
                Span::Break => self.put("<br>", &[]),
            }
        }
    }

    /// A sample of a mark, as charts have it.
    fn mark(&mut self, tone: chart::Tone) {
        self.put(
            "<svg class=\"chart\" width=\"22\" height=\"12\" viewBox=\"0 0 22 12\" aria-hidden=\"true\"><g class=\"{}\">",
            &[&tone.class()],
        );
        self.put_own(&swatch(tone, 1.0, 6.0));
        self.put("</g></svg>", &[]);
    }

    fn figure(&mut self, figure: &Figure) {
        self.within(
            "<div class=\"card tile\"><p class=\"name\">",
            &figure.name,
            "</p>",
        );
        self.put(
            "<p class=\"value\">{}<small>{}</small></p>",
            &[&figure.value, &figure.unit],
        );
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
                        match text.words().is_empty() {
                            true => "<td data-head=\"{}\"",
                            false => "<td role=\"cell\" data-head=\"{}\"",
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
            self.put(
                "<ul class=\"legend\" aria-label=\"Shown in the chart\">",
                &[],
            );
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
        let renamed = Chart {
            name,
            ..chart.clone()
        };
        for width in [Width::Wide, Width::Narrow] {
            for log in [false, true] {
                if !log || chart.log.is_some() {
                    let alone = None;
                    self.put_own(&chart::svg(&renamed, Look { width, log, alone }));
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

/// The class of good and bad news, which is a word for them too.
fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "better",
        Tone::Bad => "worse",
    }
}

/// The style sheet: the house's rules, with the colours of both themes.
fn style() -> String {
    let [light, dark] = [Theme::Light, Theme::Dark].map(palette::properties);
    let charts = palette::rules(|name| format!("var(--{name})"));
    format!(
        ":root{{{light}}}\
         @media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\
         :root[data-theme=dark]{{color-scheme:dark;{dark}}}\n\
         {STYLE}{charts}\
         @media print{{:root,:root:not([data-theme=light]),:root[data-theme=dark]{{color-scheme:light;{light}}}}}"
    )
}

/// The page's content security policy: its own style and script, by their digests, and no other
/// source.
fn policy(style: &str) -> String {
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        source(style),
        source(SCRIPT)
    )
}

/// The content of an element, as a policy identifies it.
pub(super) fn source(text: &str) -> String {
    format!(
        "sha256-{}",
        STANDARD.encode(Sha256::digest(text.as_bytes()))
    )
}
