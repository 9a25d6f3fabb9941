//! The catalogue of metrics as the site's pages quote it: read of the guide's page of metrics,
//! which is generated from the catalogue itself.

use anyhow::{Context, Result};

const PAGE: &str = "reference/metrics.md";

struct Metric {
    name: String,
    definition: String,
    equals: String,
}

pub struct Catalogue(Vec<Metric>);

impl Catalogue {
    pub fn read(page: &str) -> Result<Catalogue> {
        let mut metrics = Vec::new();
        for section in page.split("\n## `").skip(1) {
            let (name, text) = section.split_once('`').context("a metric without a name")?;
            let line = |key: &str| -> Result<String> {
                let begin = format!("- **{key}:** ");
                let line = text.lines().find_map(|line| line.strip_prefix(&begin));
                let line = line.with_context(|| format!("{PAGE}: `{name}` has no line `{key}`"))?;
                Ok(line.to_owned())
            };
            let (definition, equals) = (line("Definition")?, line("Equals")?);
            metrics.push(Metric { name: name.to_owned(), definition, equals });
        }
        Ok(Catalogue(metrics))
    }

    fn metric(&self, name: &str) -> Result<&Metric> {
        let metric = self.0.iter().find(|metric| metric.name == name);
        metric.with_context(|| format!("the catalogue has no metric `{name}`"))
    }

    /// The name of a metric, as a link to its definition.
    pub fn cell(&self, name: &str) -> Result<String> {
        self.metric(name)?;
        Ok(format!("[`{name}`]({PAGE}#{name})"))
    }

    /// A sentence with a metric's definition and the tools whose figure it equals.
    pub fn definition(&self, name: &str) -> Result<String> {
        let Metric { definition, equals, .. } = self.metric(name)?;
        let name = self.cell(name)?;
        Ok(format!("{name}: {definition}. *Equals:* {equals}."))
    }

    /// A table of all metrics with the tools whose figure they equal.
    pub fn table(&self) -> String {
        let mut table = "| metric | equals |\n| --- | --- |\n".to_owned();
        for Metric { name, equals, .. } in &self.0 {
            let equals = equals.replace('|', "\\|");
            table += &format!("| [`{name}`]({PAGE}#{name}) | {equals} |\n");
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::Catalogue;

    #[test]
    fn a_metric_is_quoted_with_its_definition() {
        let page = "# Metrics\n\n## `ttft`\n\n- **Definition:** first - sent\n- **Unit:** ms\n\
                    - **Equals:** TTFT of SGLang\n\n## `e2e`\n\n- **Definition:** last - sent\n\
                    - **Equals:** E2E of SGLang\n";
        let catalogue = Catalogue::read(page).unwrap();
        assert_eq!(
            catalogue.definition("ttft").unwrap(),
            "[`ttft`](reference/metrics.md#ttft): first - sent. *Equals:* TTFT of SGLang."
        );
        assert_eq!(catalogue.table().lines().count(), 4);
        let wrong = catalogue.cell("tttf").unwrap_err();
        assert_eq!(wrong.to_string(), "the catalogue has no metric `tttf`");
        assert!(Catalogue::read("\n## `ttft`\n").is_err());
    }
}
