//! The user guide as it ships inside the runner: the pages of `host/guide`, which mdBook makes a
//! site of.

use model::nearest;

/// A page of the guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub name: &'static str,
    pub about: &'static str,
    /// Its place in the book, below `host/guide/src`.
    file: &'static str,
}

impl Page {
    pub fn text(&self) -> &'static str {
        shipped::text(self.file).unwrap_or_default()
    }
}

macro_rules! page {
    ($name:literal, $file:literal, $about:literal) => {
        Page { name: $name, about: $about, file: concat!("guide/", $file, ".md") }
    };
}

/// The pages, in the order of the book. The tables of measured statistics are on the site alone.
#[rustfmt::skip]
pub const PAGES: [Page; 32] = [
    page!("start", "start", "install, build, and run for the first time"),
    page!("installing", "installing", "packages: their contents, and how to build them"),
    page!("scenarios", "scenarios", "describe a run in a file"),
    page!("datasets", "datasets", "choose the prompts: lengths, conversations, agents, traces, files"),
    page!("backends", "backends", "choose the engine: routes, forced lengths, usage, keys"),
    page!("load", "load", "choose the number of requests, and their times"),
    page!("searching", "searching", "measure several loads, and find the highest that keeps objectives"),
    page!("agents", "agents", "replay agents: from a trace to jobs, agents per device and a row"),
    page!("recording", "recording", "record your own traffic as an anonymous workload, and replay it"),
    page!("labs", "labs", "try an engine's options, and find the better ones"),
    page!("fleets", "fleets", "send requests from many machines, as one run"),
    page!("connections", "connections", "targets, HTTP versions, TLS, timeouts"),
    page!("monitoring", "monitoring", "watch a run, in a terminal or with Prometheus"),
    page!("devices", "devices", "measure power, energy and cost, for a million tokens too"),
    page!("mock", "mock", "try things out against the built-in engine"),
    page!("coming-from", "coming-from", "use flags and names of vLLM's and SGLang's clients"),
    page!("results", "results", "read a result, and its metrics"),
    page!("findings", "findings", "read the verdict, its findings, and the failures by class"),
    page!("scorers", "scorers", "score answers: the scorers that ship, and their scores"),
    page!("reports", "reports", "draw pages, charts and tables"),
    page!("comparing", "comparing", "compare runs with each other"),
    page!("over-time", "over-time", "index runs, and find steps between versions of an engine"),
    page!("uncertainty", "uncertainty", "intervals, the need for repeats, the length of a run"),
    page!("auditing", "auditing", "check the results of other tools"),
    page!("verify", "verify", "check a benchmark client against known truth"),
    page!("ci", "ci", "thresholds and exit codes"),
    page!("python", "python", "measure from Python, and read runs into data frames"),
    page!("plugins", "plugins", "use plugins; `runner plugin guide` is for their authors"),
    page!("metrics", "reference/metrics", "reference: every metric, with its formula"),
    page!("scenario-keys", "reference/scenario-keys", "reference: every key of a scenario"),
    page!("lab-keys", "reference/lab-keys", "reference: every key of a lab file"),
    page!("plugin-cases", "reference/plugin-cases", "reference: the files of a plugin's test cases"),
];

/// The page with that name. Fails if there is no such page: a message with the nearest name.
pub fn page(name: &str) -> Result<&'static Page, String> {
    PAGES.iter().find(|page| page.name == name).ok_or_else(|| {
        let names = PAGES.iter().map(|page| page.name);
        match nearest(name, names.clone()) {
            Some(close) => format!("the guide has no page `{name}`; did you mean `{close}`?"),
            None => {
                let names: Vec<&str> = names.collect();
                format!("the guide has no page `{name}`; its pages are {}", names.join(", "))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::PAGES;

    /// Every page of the book has a command, and the reverse.
    #[test]
    fn lists_every_page_of_the_book() {
        let summary = include_str!("../../../guide/src/SUMMARY.md");
        let listed: Vec<&str> = summary
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(".md)").next())
            .map(|path| path.rsplit('/').next().unwrap_or(path))
            .filter(|name| !name.ends_with("statistics"))
            .collect();
        let known: Vec<&str> = PAGES.iter().map(|page| page.name).collect();
        assert_eq!(listed, known);
    }
}
