//! Actions of a reader on a page.

use super::page;
use crate::support::browser::{Browser, browser};
use crate::support::made_up::MadeUp;

const LIVE: &str = "document.getElementById('live').textContent";

async fn opened() -> Option<(Browser, tempfile::TempDir)> {
    let browser = browser().await?;
    let folder = tempfile::tempdir().unwrap();
    browser.open(&page(&[MadeUp::default().write(folder.path())], folder.path())).await;
    Some((browser, folder))
}

fn tip(chart: &str) -> String {
    format!("document.querySelector('#{chart} .tip')")
}

#[tokio::test]
async fn pointing_at_a_chart_shows_values() {
    let Some((browser, _folder)) = opened().await else { return };
    for chart in ["ttft-ecdf", "ttft-histogram", "course", "waterfall", "ttft-prompt"] {
        let tip = tip(chart);
        assert!(browser.holds(&format!("{tip}.hidden")).await, "{chart}");
        browser.point(&format!("#{chart} .plot"), (0.5, 0.5)).await;
        browser.until(&format!("!{tip}.hidden && {tip}.querySelector('dd')")).await;
        assert!(browser.holds(&format!("document.querySelector('#{chart} .cross')")).await);
        let text = browser.text(&format!("{tip}.textContent")).await;
        assert!(text.chars().any(|c| c.is_ascii_digit()), "{chart}: {text}");
        // The same text is in the table.
        let value = browser.text(&format!("{tip}.querySelector('dd').textContent")).await;
        let cells = format!(
            "[...document.querySelectorAll('#{chart} td')].some((cell) => cell.textContent === {value:?})"
        );
        assert!(browser.holds(&cells).await, "{chart}: {value}");
        // It is within the chart.
        let within = format!(
            "(() => {{ const t = {tip}.getBoundingClientRect(), p = {tip}.parentElement.getBoundingClientRect(); \
             return t.left >= p.left - 1 && t.right <= p.right + 1 }})()"
        );
        assert!(browser.holds(&within).await, "{chart}");
        browser.point("h1", (0.5, 0.5)).await;
        browser.until(&format!("{tip}.hidden")).await;
    }
}

#[tokio::test]
async fn arrow_keys_step_through_a_chart_and_it_speaks() {
    let Some((browser, _folder)) = opened().await else { return };
    browser.value("document.querySelector('#ttft-ecdf .plot').focus()").await;
    browser.key("ArrowRight");
    browser.until(&format!("{LIVE}.startsWith('Percentile P5')")).await;
    let before = browser.text(LIVE).await;
    browser.key("ArrowRight");
    browser.until(&format!("{LIVE} !== {before:?}")).await;
    browser.key("End");
    browser.until(&format!("{LIVE}.startsWith('Percentile max')")).await;
    assert!(browser.text(LIVE).await.contains(" ms"), "with its value");
    browser.key("ArrowLeft");
    browser.until(&format!("!{LIVE}.includes('largest')")).await;
    browser.key("Home");
    browser.until(&format!("{LIVE}.startsWith('Percentile min')")).await;
    browser.key("Escape");
    browser.until(&format!("{}.hidden", tip("ttft-ecdf"))).await;
    // A list of requests is stepped through from top to bottom.
    browser.value("document.querySelector('#waterfall .plot').focus()").await;
    browser.key("Home");
    browser.until(&format!("{LIVE}.startsWith('Request ')")).await;
    let first = browser.text(LIVE).await;
    browser.key("ArrowDown");
    browser.until(&format!("{LIVE} !== {first:?}")).await;
    let height = "Number(document.querySelector('#waterfall .cross path').getAttribute('d').match(/ ([0-9.]+)H/)[1])";
    let second = browser.number(height).await;
    browser.key("ArrowDown");
    browser.until(&format!("{height} > {second}")).await;
    // The focus can be seen.
    let outline = "getComputedStyle(document.activeElement).outlineStyle";
    assert_eq!(browser.text(outline).await, "solid");
}

#[tokio::test]
async fn series_scales_and_colours_can_be_changed() {
    let Some((browser, _folder)) = opened().await else { return };
    let marks = "[...document.querySelectorAll('#waterfall .plot > svg .k0')].filter((g) => g.getClientRects().length).length";
    assert!(browser.number(marks).await > 0.0);
    let button = "#waterfall .legend .k0 button";
    let pressed = format!("document.querySelector({button:?}).getAttribute('aria-pressed')");
    assert_eq!(browser.text(&pressed).await, "true");
    browser.press(button).await;
    browser.until(&format!("{marks} === 0")).await;
    assert_eq!(browser.text(&pressed).await, "false");
    browser.press(button).await;
    browser.until(&format!("{marks} > 0")).await;

    let shown = |class: &str| {
        format!(
            "document.querySelector('#ttft-prompt .plot > svg.wide.{class}').getBoundingClientRect().width > 0"
        )
    };
    browser.press("#ttft-prompt [data-scale='log']").await;
    browser.until(&shown("log")).await;
    assert!(!browser.holds(&shown("linear")).await);
    browser.press("#ttft-prompt [data-scale='linear']").await;
    browser.until(&shown("linear")).await;

    let ground = "getComputedStyle(document.body).backgroundColor";
    let before = browser.text(ground).await;
    browser.press("#theme").await;
    browser.until(&format!("{ground} !== {before:?}")).await;
    browser.press("#theme").await;
    browser.until(&format!("{ground} === {before:?}")).await;
    assert_eq!(browser.console(), [""; 0]);
}

#[tokio::test]
async fn definitions_are_shown_by_pointer_focus_and_press() {
    let Some((browser, _folder)) = opened().await else { return };
    let term = "#all ~ div button.term[aria-describedby='def-ttft']";
    let open = "document.getElementById('def-ttft').matches(':popover-open')";
    assert!(!browser.holds(open).await);
    browser.point(term, (0.5, 0.5)).await;
    browser.until(open).await;
    assert!(
        browser
            .text("document.getElementById('def-ttft').innerText")
            .await
            .contains("first output event")
    );
    browser.point("h1", (0.9, 0.5)).await;
    browser.until(&format!("!{open}")).await;
    browser.value(&format!("document.querySelector({term:?}).focus()")).await;
    browser.until(open).await;
    browser.key("Escape");
    browser.until(&format!("!{open}")).await;
    browser.value("document.activeElement.blur()").await;
    browser.press(term).await;
    browser.until(open).await;
}
