//! The parts of every page around its content: its head with style and script, a content security
//! policy that allows nothing else, and its end with the definitions that terms show. The script
//! only moves and hides elements.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
use sha2::{Digest, Sha256};

use super::Html;
use crate::chart::{Theme, palette};
use crate::document::Block;
use result::metric::Metric;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

impl<'d> Html<'d> {
    pub(super) fn top(&mut self, title: &str, blocks: &'d [Block]) {
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
                let short = short.unwrap_or_else(|| heading.text.to_plain());
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
    pub(super) fn bottom(&mut self, folders: &[String], definitions: &[(&str, &'static Metric)]) {
        self.put("<footer><p>", &[]);
        for (place, folder) in folders.iter().enumerate() {
            let before = if place == 0 { "Drawn from the records of " } else { ", " };
            self.put("{}<code>{}</code>", &[&before, folder]);
        }
        let (by, says) =
            if folders.is_empty() { ("Made", "") } else { ("", " and contains no secrets") };
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

/// The page's content security policy: its own style and script, by their digests.
fn policy(style: &str) -> String {
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        source(style),
        source(SCRIPT)
    )
}

/// The content of an element, as a policy identifies it.
pub(crate) fn source(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}
