use super::html::source;
use super::*;
use crate::chart::Chart;
use crate::charts::curve::{Line, Plane, Plot, Spot, Style, chart};
use result::finding::{Id, Severity};

const HOSTILE: &str = "<script>alert(1)</script>|`x`|</pre><b>\u{202e}\u{1b}[2J\"' # [a](javascript:b) & ${7*7}{{ 7 }}\n# h";

fn a_chart(words: &str) -> Chart {
    chart(&Plot {
        name: "main".to_owned(),
        title: words.to_owned(),
        note: words.to_owned(),
        x: words.to_owned(),
        head: words.to_owned(),
        panels: vec![Plane {
            y: words.to_owned(),
            is_share: false,
            lines: vec![Line {
                label: words.to_owned(),
                shape: Style::Joined,
                spots: vec![Spot { row: words.to_owned(), x: 1.0, y: 2.0, text: words.to_owned() }],
            }],
            rules: Vec::new(),
        }],
        bands: Vec::new(),
        is_named: true,
    })
}

/// A page that has these words wherever words can be.
fn page(words: &str) -> Document {
    let mut page = Document::new("Lab", words);
    page.say(words);
    page.heading(2, words);
    page.heading(2, words);
    page.heading(3, words);
    page.paragraph(Text::strong(words).then(words));
    page.paragraph(Text(vec![Span::Code(words.to_owned())]));
    page.list(vec![Text::plain(words)]);
    page.code("text", words);
    let mut table = Table::new([words, "Number"]);
    table.row([words, "1.5"]);
    table.row([words, ""]);
    page.table(table);
    page.chart(a_chart(words));
    page.push(Block::Facts(vec![pair(words, words)]));
    page.push(Block::Figures(vec![Figure {
        name: words.into(),
        value: words.to_owned(),
        unit: "ms",
        lines: vec![words.to_owned()],
    }]));
    let line = Text::from(Span::Link(words.to_owned(), words.to_owned()))
        .with(Span::Change(words.to_owned(), Tone::Good))
        .with(Span::Badge(words.to_owned(), Verdict::Invalid));
    page.push(Block::Verdict(Verdict::Suspect, words.into(), vec![line]));
    let finding = crate::fixture::finding(Id::FewSamples, Severity::Note, [words; 3]);
    page.push(Block::Findings(vec![finding]));
    page.push(Block::Details {
        summary: words.to_owned(),
        is_printed: true,
        blocks: vec![Block::Cards(vec![vec![
            Block::heading(3, words),
            Block::Pairs(vec![pair(words, words)]),
        ]])],
    });
    page.push(Block::Series(vec![words.to_owned()]));
    page.folders = vec![words.to_owned()];
    page
}

#[test]
fn foreign_text_has_no_effect() {
    let html = page(HOSTILE).html();
    assert_eq!(html.matches("<script").count(), 1, "the page's own");
    assert!(!html.contains("</pre><b>") && !html.contains("alert(1)</script>"));
    assert!(!html.contains(['\u{1b}', '\u{202e}']));
    assert!(html.contains("{{ 7 }}"), "it is no template");
    let markdown = page(HOSTILE).markdown();
    assert!(!markdown.contains(['\u{1b}', '\u{202e}']), "{markdown}");
    // The rest of the tag is in a fence or between backticks, where it is text.
    let outside: Vec<&str> =
        markdown.lines().filter(|line| line.contains("<script>") && !line.contains('`')).collect();
    assert_eq!(outside, Vec::<&str>::new());
    let text = page(HOSTILE).text();
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    // A heading is one line, and a row has the table's number of cells.
    assert_eq!(markdown.matches("\n# ").count(), 1, "in the fence: {markdown}");
    for row in markdown.lines().filter(|line| line.starts_with('|')) {
        let bars = row.replace("\\|", "").matches('|').count();
        assert_eq!(bars, 3, "{row}");
    }
}

#[test]
fn names_of_elements_are_there_once() {
    let html = page("main").html();
    let mut ids: Vec<&str> =
        html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "{ids:?}");
}

#[test]
fn nothing_is_fetched_and_nothing_else_may_run() {
    let text = page("main").html();
    let policy = text.split("Content-Security-Policy\" content=\"").nth(1).unwrap();
    let policy = policy.split('"').next().unwrap();
    assert!(policy.starts_with("default-src &#39;none&#39;;"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let within =
        |open: &str, close: &str| text.split(open).nth(1).unwrap().split(close).next().unwrap();
    for inline in [within("<style>", "</style>"), within("<script>", "</script>")] {
        let digest = source(inline);
        assert!(policy.contains(&digest), "{digest}: {policy}");
    }
    for part in [" src=", "url(", "@import", "style=\"", " onclick", "http-equiv=\"refresh"] {
        assert!(!text.contains(part), "{part}");
    }
    let links = text.split(" href=\"").skip(1);
    for link in links {
        assert!(link.starts_with('#') || link.starts_with("data:,"), "{}", &link[..40]);
    }
}

#[test]
fn both_forms_say_the_same() {
    let mut page = Document::new("Lab", "Title");
    page.say("Use `--fast`.");
    page.heading(2, "Numbers");
    let mut table = Table::new(["Name", "Value", "Note"]);
    table.row([
        Cell::from("1e5"),
        "+1.2 %".into(),
        Cell { text: "better".into(), tone: Tone::Good },
    ]);
    page.table(table);
    page.code("bash", "vllm serve `x`\n");
    page.list(vec![Text::plain("1. one"), Text::strong("Two: ").then("2")]);
    assert_eq!(
        page.markdown(),
        "# Title\n\nUse `--fast`.\n\n## Numbers\n\n| Name | Value | Note |\n| --- | ---: | --- |\n\
         | 1e5 | +1.2 % | better |\n\n```bash\nvllm serve `x`\n```\n\n- 1\\. one\n- **Two:** 2\n"
    );
    let html = page.html();
    for part in [
        "<p>Use <code>--fast</code>.</p>",
        "<h2 id=\"numbers\">Numbers</h2>",
        "<th scope=\"row\" role=\"rowheader\">1e5</th><td role=\"cell\" data-head=\"Value\">+1.2 %</td>",
        "data-head=\"Note\" class=\"text better\">better</td>",
        "<pre tabindex=\"0\">vllm serve `x`",
        "<li><strong>Two: </strong>2</li>",
        "<a href=\"#numbers\">Numbers</a>",
        "default-src &#39;none&#39;",
    ] {
        assert!(html.contains(part), "{part}\n{html}");
    }
    for source in ["src=\"", "href=\"http", "url(", "@import"] {
        assert!(!html.contains(source), "it needs no network: {source}");
    }
}
