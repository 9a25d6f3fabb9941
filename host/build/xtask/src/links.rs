//! Links of documents: a page's links and anchors, read from Markdown and from HTML, and the check
//! that every link within a set of pages leads somewhere. Links to other servers are not checked,
//! because such a test fails when they do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use html5gum::{DefaultEmitter, Token, Tokenizer};
use percent_encoding::percent_decode_str;
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

/// A page: the places that a link can lead to, and its own links.
#[derive(Clone, Debug, Default)]
pub struct Page {
    anchors: BTreeSet<String>,
    links: Vec<String>,
    /// True if links start at the top of the set, as on a page for missing addresses.
    from_top: bool,
}

/// The extensions of Markdown that the pages use.
pub const MARKDOWN: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

impl Page {
    /// Reads Markdown with its HTML. Headings have the anchors of mdBook and GitHub.
    pub fn from_markdown(text: &str) -> Page {
        let mut page = Page::default();
        let mut heading: Option<String> = None;
        let mut html = String::new();
        for event in Parser::new_ext(text, MARKDOWN) {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor(&heading.take().unwrap_or_default());
                    page.add_anchor(&anchor);
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::Start(Tag::Link { link_type: LinkType::Email, .. }) => {}
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Html(text) | Event::InlineHtml(text) => html.push_str(&text),
                _ => {}
            }
        }
        let within = Page::from_html(&html);
        page.anchors.extend(within.anchors);
        page.links.extend(within.links);
        page
    }

    pub fn from_html(text: &str) -> Page {
        let mut page = Page::default();
        let mut emitter = DefaultEmitter::default();
        // So that text in a script is not taken for tags.
        emitter.naively_switch_states(true);
        for Ok(token) in Tokenizer::new_with_emitter(text, emitter) {
            let Token::StartTag(tag) = token else { continue };
            for (name, value) in &tag.attributes {
                let value = String::from_utf8_lossy(value).into_owned();
                match (&tag.name[..], &name[..]) {
                    (b"base", b"href") => page.from_top = true,
                    (b"a", b"name") | (_, b"id") => {
                        page.anchors.insert(value);
                    }
                    (_, b"href" | b"src") => page.links.push(value),
                    _ => {}
                }
            }
        }
        page
    }

    /// Adds the anchor of a heading; a repeated anchor gets a number.
    fn add_anchor(&mut self, anchor: &str) {
        let mut unique = anchor.to_owned();
        let mut number = 0;
        while !self.anchors.insert(unique.clone()) {
            number += 1;
            unique = format!("{anchor}-{number}");
        }
    }
}

fn anchor(words: &str) -> String {
    words
        .trim()
        .chars()
        .filter_map(|letter| match letter {
            _ if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
            '_' | '-' => Some(letter),
            _ if letter.is_whitespace() => Some('-'),
            _ => None,
        })
        .collect()
}

/// Lists the links that lead nowhere, each with its page and the reason. The pages' paths, and the
/// paths of the files that they link to, are below `top`.
pub fn broken(top: &Path, pages: &BTreeMap<PathBuf, Page>) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, page) in pages {
        for link in &page.links {
            if let Err(why) = follow(top, pages, path, page, link) {
                broken.push(format!("{} links to `{link}`: {why}", path.display()));
            }
        }
    }
    broken
}

fn follow(
    top: &Path,
    pages: &BTreeMap<PathBuf, Page>,
    from: &Path,
    page: &Page,
    link: &str,
) -> Result<(), String> {
    if leaves(link) {
        return Ok(());
    }
    let (target, anchor) = match link.split_once('#') {
        Some((target, anchor)) => (target, Some(anchor)),
        None => (link, None),
    };
    let target = decoded(target.split('?').next().unwrap_or(target));
    let mut place = match (target.as_str(), target.strip_prefix('/')) {
        ("", _) => from.to_owned(),
        (_, Some(below_top)) => PathBuf::from(below_top),
        _ if page.from_top => PathBuf::from(&target),
        _ => from.with_file_name("").join(&target),
    };
    place = normal(&place).ok_or("it leaves the set of pages")?;
    if target.ends_with('/') || place.as_os_str().is_empty() {
        let index = place.join("index.html");
        if pages.contains_key(&index) {
            place = index;
        }
    }
    match (pages.get(&place), anchor) {
        (None, _) if !top.join(&place).exists() => Err(format!("no file `{}`", place.display())),
        (Some(there), Some(anchor)) if !anchor.is_empty() => {
            if there.anchors.contains(&decoded(anchor)) {
                Ok(())
            } else {
                Err(format!("`{}` has no such heading", place.display()))
            }
        }
        _ => Ok(()),
    }
}

/// True of a link with a scheme, such as `https:`.
pub fn leaves(link: &str) -> bool {
    link.starts_with("//")
        || link.split_once(':').is_some_and(|(scheme, _)| {
            !scheme.is_empty() && scheme.chars().all(|letter| letter.is_ascii_alphanumeric())
        })
}

/// A path without `.` and `..`; nothing if it leads above its start.
pub fn normal(path: &Path) -> Option<PathBuf> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.iter().collect())
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{Page, broken};

    fn pages(all: &[(&str, Page)]) -> Vec<String> {
        let pages = all.iter().map(|(path, page)| (PathBuf::from(path), page.clone()));
        broken(Path::new("/nothing is here"), &pages.collect())
    }

    #[test]
    fn a_link_in_markdown_leads_to_a_heading() {
        let there = "# One\n\n## `ttft` (ms), and more\n\n## Same\n\n## Same\n";
        let good = "[a](b/there.md#ttft-ms-and-more) [b](b/there.md#same-1) [c](https://x.y/z) \
                    [d](#here)\n\n## Here\n\n```sh\n[no](link.md)\n```\n`[no](link.md)`\n";
        let there = || ("b/there.md", Page::from_markdown(there));
        let all = [there(), ("a.md", Page::from_markdown(good))];
        assert_eq!(pages(&all), Vec::<String>::new());
        let wrong =
            "[a](b/there.md#two) ![b](missing.png) <a href=\"b/other.md\">x</a> [d](../x.md)";
        let all = [there(), ("a.md", Page::from_markdown(wrong))];
        assert_eq!(
            pages(&all),
            [
                "a.md links to `b/there.md#two`: `b/there.md` has no such heading",
                "a.md links to `missing.png`: no file `missing.png`",
                "a.md links to `../x.md`: it leaves the set of pages",
                "a.md links to `b/other.md`: no file `b/other.md`",
            ]
        );
    }

    #[test]
    fn a_link_in_html_leads_to_an_element() {
        let index = "<h1 id='one two'>x</h1><a name=old></a>";
        let good = "<a href='../index.html#one%20two'>x</a><a href='../#old'>y</a>\
                    <script>'<a href=\"no\">'</script><a href='mailto:a@b'>m</a>";
        let lost = "<base href='/'><a href='sub/good.html'>x</a><img src='gone.svg'>";
        let all = [
            ("index.html", Page::from_html(index)),
            ("sub/good.html", Page::from_html(good)),
            ("404.html", Page::from_html(lost)),
        ];
        assert_eq!(pages(&all), ["404.html links to `gone.svg`: no file `gone.svg`"]);
    }
}
