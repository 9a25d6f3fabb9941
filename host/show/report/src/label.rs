//! The names of figures and engines on pages, for people.

use model::about::About;
use result::figure::{Figure, Statistic, WHOLE};

/// A figure by its name, with its unit: `Output token throughput (tok/s)` for
/// `throughput.output-tokens-per-s`, `P99 TTFT (ms)` for `ttft.p99`. Scores and names that are no
/// figure stay as they are.
pub fn label(name: &str) -> String {
    let Ok(figure) = name.parse::<Figure>() else { return name.to_owned() };
    let words = match &figure {
        Figure::Whole(place) => WHOLE[*place].label.to_owned(),
        Figure::Score(_) => figure.to_string(),
        Figure::Of(metric, statistic) => {
            let metric = match metric.len() {
                // The short ones are abbreviations.
                ..=4 => metric.to_uppercase(),
                _ => (*metric).to_owned(),
            };
            match statistic {
                Statistic::Mean => format!("Mean {metric}"),
                Statistic::Percentile(50.0) => format!("Median {metric}"),
                Statistic::Percentile(percent) => format!("P{percent} {metric}"),
                other => format!("{metric} {other}"),
            }
        }
    };
    match figure.unit() {
        "" => words,
        unit => format!("{words} ({unit})"),
    }
}

/// An engine with its version, if it is known: `vllm 0.10.1`.
pub(crate) fn engine(about: &About) -> Option<String> {
    let words = [about.engine.as_deref()?].into_iter();
    let words = words.chain(about.engine_version.as_deref());
    Some(words.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    #[test]
    fn figures_have_names_for_people() {
        for (name, label) in [
            ("ttft.p99", "P99 TTFT (ms)"),
            ("tpot.mean", "Mean TPOT (ms)"),
            ("e2e.median", "Median E2E (ms)"),
            ("throughput.output-tokens-per-s", "Output token throughput (tok/s)"),
            ("requests.success-share", "Success share"),
            ("score.exact-match", "score.exact-match"),
        ] {
            assert_eq!(super::label(name), label);
        }
    }
}
