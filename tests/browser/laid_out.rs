//! Telephones, paper, dark.

use super::page;
use crate::support::browser::browser;
use crate::support::made_up::MadeUp;

/// Finds the elements beyond the right edge of the page, unless an ancestor scrolls on its own.
const OUTSIDE: &str = "[...document.querySelectorAll('body *')]
    .filter((e) => !e.closest('.scroll, .unseen, .skip, pre, svg, .bar ul') && e.getClientRects().length)
    .filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map((e) => e.outerHTML.slice(0, 100))";

#[tokio::test]
async fn a_page_fits_a_telephone() {
    let Some(browser) = browser().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let one = MadeUp::default().write(folder.path());
    let two = MadeUp { version: "0.11.0", slower: 1.1, ..MadeUp::default() };
    let two = two.write(folder.path());
    for runs in [vec![one.clone()], vec![one, two]] {
        browser.size(360, 780);
        browser.open(&page(&runs, folder.path())).await;
        browser.until("innerWidth === 360").await;
        assert_eq!(browser.value(OUTSIDE).await, serde_json::json!([]));
        // A vertical scroll bar takes its share of the width.
        let fits = "document.documentElement.scrollWidth === document.documentElement.clientWidth";
        assert!(browser.holds(fits).await);
        // Two runs' figures are side by side without scrolling.
        let beside = "[...document.querySelectorAll('.beside')]";
        let within = format!("{beside}.every((table) => table.scrollWidth <= table.clientWidth)");
        assert!(browser.holds(&within).await);
        let tables = browser.number(&format!("{beside}.length")).await;
        assert_eq!(tables, if runs.len() > 1 { 1.0 } else { 0.0 });
        // Charts are drawn for a narrow screen: their text is as large as the text around them.
        let shown = "[...document.querySelectorAll('.plot > svg')].filter((svg) => svg.getBoundingClientRect().width > 0)";
        assert!(
            browser
                .holds(&format!(
                    "{shown}.length > 0 && {shown}.every((svg) => svg.classList.contains('narrow'))"
                ))
                .await
        );
        let smallest = format!(
            "Math.min(...{shown}.map((svg) => 12 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width))"
        );
        assert!(browser.number(&smallest).await >= 11.0);
    }
}

/// Verdict, headline figures and a picture are on the first screen; notes are folded below it.
#[tokio::test]
async fn the_answer_is_on_the_first_screen() {
    let Some(browser) = browser().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = page(&[MadeUp::default().write(folder.path())], folder.path());
    for (width, height) in [(1280, 800), (390, 844)] {
        browser.size(width, height);
        browser.open(&path).await;
        browser.until(&format!("innerWidth === {width}")).await;
        let top = |of: &str| {
            format!(
                "document.querySelectorAll({of:?})[0].getBoundingClientRect().top < innerHeight"
            )
        };
        for part in [".verdict.valid .line", ".tile", ".plot"] {
            assert!(browser.holds(&top(part)).await, "{part} at {width}");
        }
        let tiles = "[...document.querySelectorAll('.tiles')][0].getBoundingClientRect().bottom < innerHeight";
        assert!(browser.holds(tiles).await, "figures at {width}");
        let notes = "[...document.querySelectorAll('.finding.note')].every((note) => note.closest('details:not([open])'))";
        assert!(browser.holds(notes).await, "notes at {width}");
    }
}

#[tokio::test]
async fn paper_is_light_and_has_no_controls() {
    let Some(browser) = browser().await else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.open(&page(&[MadeUp::default().write(folder.path())], folder.path())).await;
    browser.medium("print", "dark");
    browser.until("getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)'").await;
    let controls = "[...document.querySelectorAll('.bar, .scales, .tip, .chart-box details')].filter((e) => e.getClientRects().length).length";
    assert_eq!(browser.number(controls).await, 0.0);
    let ink = "getComputedStyle(document.body).color";
    assert_eq!(browser.text(ink).await, "rgb(22, 25, 29)");
    assert!(browser.pdf().len() > 50_000);
}

#[tokio::test]
async fn a_page_is_dark_for_users_who_prefer_it() {
    let Some(browser) = browser().await else { return };
    let folder = tempfile::tempdir().unwrap();
    browser.medium("screen", "dark");
    browser.open(&page(&[MadeUp::default().write(folder.path())], folder.path())).await;
    let ground = "getComputedStyle(document.body).backgroundColor";
    browser.until(&format!("{ground} === 'rgb(14, 17, 22)'")).await;
    assert_eq!(browser.text("document.getElementById('theme').textContent").await, "Light");
    browser.press("#theme").await;
    browser.until(&format!("{ground} === 'rgb(246, 247, 249)'")).await;
}
