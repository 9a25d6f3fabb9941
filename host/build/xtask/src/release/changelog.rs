//! CHANGELOG.md: sections of versions; the first may be open. The text of a section is its
//! authors'.

use jiff::civil::Date;

/// Heading of the section that gathers changes until the next release.
const UNRELEASED: &str = "[Unreleased]";

/// One version's section.
pub struct Section<'t> {
    /// The heading without its `## `.
    pub heading: &'t str,
    /// Line of the heading, from 1.
    pub line: usize,
    /// All lines below the heading.
    pub text: &'t str,
}

impl Section<'_> {
    /// The version in brackets, or the word there.
    pub fn name(&self) -> &str {
        let rest = self.heading.strip_prefix('[').unwrap_or(self.heading);
        rest.split(']').next().unwrap_or(rest)
    }

    /// The date after ` - `, if there is one.
    pub fn date(&self) -> Option<Date> {
        let (_, date) = self.heading.split_once("] - ")?;
        date.parse().ok()
    }

    /// True until a release dates the section.
    fn is_open(&self) -> bool {
        self.heading.eq_ignore_ascii_case(UNRELEASED)
            || self.heading.ends_with("] - not released yet")
    }

    /// True if something is listed: headings alone say nothing.
    pub fn has_entries(&self) -> bool {
        self.text.lines().any(|line| line.starts_with("- "))
    }
}

/// The sections of a changelog, in its order.
pub struct Changelog<'t>(Vec<Section<'t>>);

impl<'t> Changelog<'t> {
    /// Splits a changelog at its headings of the second level.
    pub fn read(text: &'t str) -> Self {
        let mut starts = Vec::new();
        let mut at = 0;
        for (index, line) in text.split_inclusive('\n').enumerate() {
            if let Some(heading) = line.strip_prefix("## ") {
                starts.push((heading.trim_end(), index + 1, at, at + line.len()));
            }
            at += line.len();
        }
        let ends = starts.iter().skip(1).map(|next| next.2).chain([text.len()]);
        let sections = starts.iter().zip(ends);
        Self(
            sections
                .map(|(&(heading, line, _, from), end)| Section {
                    heading,
                    line,
                    text: &text[from..end],
                })
                .collect(),
        )
    }

    /// Names of the sections.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(Section::name).collect()
    }

    pub fn of(&self, version: &str) -> Option<&Section<'t>> {
        self.0.iter().find(|section| section.name() == version)
    }

    /// The section of unreleased changes.
    pub fn open(&self) -> Option<&Section<'t>> {
        self.0.iter().find(|section| section.is_open())
    }

    /// True if a version's section has a date.
    pub fn is_released(&self, version: &str) -> bool {
        self.of(version).is_some_and(|section| section.date().is_some())
    }

    /// Reasons that keep the first section from being released.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let path = super::CHANGELOG;
        let form = "expected `## [Unreleased]`, or `## [VERSION] - YYYY-MM-DD`";
        for (index, section) in self.0.iter().enumerate() {
            let line = section.line;
            if !section.is_open() && section.date().is_none() {
                mistakes.push(format!("{path}:{line}: `{}`: {form}", section.heading));
            }
            if section.is_open() && index > 0 {
                mistakes.push(format!("{path}:{line}: only the first section may be open"));
            }
        }
        match self.0.first() {
            Some(section) if section.is_open() && !section.has_entries() => mistakes.push(format!(
                "{path}:{}: the section is empty; list what users see of this version",
                section.line
            )),
            Some(section) if section.is_open() => {}
            _ => mistakes.push(format!(
                "{path}: expected `## [Unreleased]` as the first section; list there what is new"
            )),
        }
        mistakes
    }

    /// The text with its open section named and dated, and a new open one above it.
    pub fn released(&self, text: &str, version: &str, date: &str) -> Option<String> {
        let open = self.open()?;
        let old = format!("## {}\n", open.heading);
        let (before, after) = text.split_once(&old)?;
        Some(format!("{before}## {UNRELEASED}\n\n## [{version}] - {date}\n{after}"))
    }
}

#[cfg(test)]
mod tests {
    use super::Changelog;

    const TEXT: &str = "# Changelog\n\nWords.\n\n## [Unreleased]\n\n### Reports\n\n- A.\n\n## [0.1.0] - 2026-01-02\n\n- B.\n";

    #[test]
    fn sections_end_where_the_next_begins() {
        let changelog = Changelog::read(TEXT);
        assert_eq!(changelog.names(), ["Unreleased", "0.1.0"]);
        assert_eq!(changelog.open().unwrap().text.trim(), "### Reports\n\n- A.");
        let section = changelog.of("0.1.0").unwrap();
        assert_eq!((section.line, section.text.trim()), (11, "- B."));
        assert!(changelog.is_released("0.1.0"));
        assert_eq!(changelog.mistakes(), [""; 0]);
    }

    #[test]
    fn a_release_dates_the_open_section_and_opens_another() {
        let changelog = Changelog::read(TEXT);
        let new = changelog.released(TEXT, "0.2.0", "2026-03-04").unwrap();
        assert_eq!(
            new,
            "# Changelog\n\nWords.\n\n## [Unreleased]\n\n## [0.2.0] - 2026-03-04\n\n### Reports\n\n- A.\n\n\
             ## [0.1.0] - 2026-01-02\n\n- B.\n"
        );
        // Nothing new stands there, so the next release is refused.
        assert_eq!(
            Changelog::read(&new).mistakes(),
            ["CHANGELOG.md:5: the section is empty; list what users see of this version"]
        );
    }

    #[test]
    fn the_first_release_has_a_number_before_its_date() {
        let text = "## [0.1.0] - not released yet\n\n- A.\n";
        let changelog = Changelog::read(text);
        assert_eq!(changelog.mistakes(), [""; 0]);
        assert!(!changelog.is_released("0.1.0"));
        assert_eq!(
            changelog.released(text, "0.1.0", "2026-03-04").unwrap(),
            "## [Unreleased]\n\n## [0.1.0] - 2026-03-04\n\n- A.\n"
        );
    }

    #[test]
    fn headings_of_another_form_are_told_together() {
        let text = "## 0.3.0\n\n- A.\n\n## [Unreleased]\n\n## [0.2.0] - soon\n";
        assert_eq!(
            Changelog::read(text).mistakes(),
            [
                "CHANGELOG.md:1: `0.3.0`: expected `## [Unreleased]`, or `## [VERSION] - YYYY-MM-DD`",
                "CHANGELOG.md:5: only the first section may be open",
                "CHANGELOG.md:7: `[0.2.0] - soon`: expected `## [Unreleased]`, or `## [VERSION] - YYYY-MM-DD`",
                "CHANGELOG.md: expected `## [Unreleased]` as the first section; list there what is new",
            ]
        );
    }
}
