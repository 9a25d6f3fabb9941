//! For tests: the catalogue as the page of the guide that lists every metric.

use std::fmt::Write;

use super::{CATALOGUE, Measure, Of};

fn page() -> String {
    let mut page = String::from(
        "# Metrics\n\n\
         This page is generated from the catalogue of metrics; do not edit it. Absent is not zero: an exchange in\n\
         which there is nothing to measure gives no sample.\n\n\
         - `sent`, `due` and all other instants are read on the client, before any plugin sees the bytes.\n\
         - `n` is the number of output tokens.\n\
         - A session is a request that depends on no other, with all that depend on it; or the turns of a conversation.\n",
    );
    for metric in CATALOGUE {
        let of = match metric.of {
            Of::Answered => "requests that were answered",
            Of::Sent => "requests that were sent, whatever came of them",
            Of::Session => "sessions whose every request was answered",
        };
        let samples = match metric.measure {
            Measure::One(_) => "at most one for each request",
            Measure::Pooled(_) => "any number for each request, pooled over the run",
            Measure::Session(_) => "one for each session",
        };
        // Writing to a string cannot fail.
        let _ = write!(
            page,
            "\n## `{}`\n\n- **Definition:** {}\n- **Unit:** {}\n- **Taken from:** {of}\n- **Samples:** {samples}\n",
            metric.name,
            metric.definition,
            metric.unit.symbol(),
        );
        if !metric.equals.is_empty() {
            let _ = writeln!(page, "- **Equals:** {}", metric.equals);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_page_of_the_guide_is_the_catalogue() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guide/src/reference/metrics.md");
        let page = super::page();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap();
        assert!(kept == page, "{} differs; BLESS=1 writes it anew", path.display());
    }
}
