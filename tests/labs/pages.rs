//! Pages of labs, searches and sweeps in a real browser: the first picture is the answer, points
//! can be seen, and nothing is cut off or scrolled sideways.

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::lab::Files;
use super::search::{ENGINE, SEARCH, SWEEP, command, saved};
use crate::support::browser::{Browser, browser};
use crate::support::process::{Mock, run_patiently};

/// Tables that scroll sideways, except folded ones.
const SCROLLED: &str = "[...document.querySelectorAll('.scroll')]
    .filter((e) => !e.closest('details:not([open])') && e.scrollWidth > e.clientWidth + 1)
    .map((e) => e.textContent.slice(0, 60))";
/// The width of the narrowest drawn point. A line's points are one path: its first is measured.
const NARROWEST: &str = "Math.min(...[...document.querySelectorAll('.spot, .cross')]
    .filter((e) => e.getClientRects().length)
    .map((e) => {
        const one = e.cloneNode();
        one.setAttribute('d', 'M' + e.getAttribute('d').split('M')[1]);
        e.after(one);
        const width = one.getBoundingClientRect().width;
        one.remove();
        return width; }))";
/// True if the first picture stands before the first table.
const PICTURE_FIRST: &str = "(() => {
    const [picture, table] = ['.plot > svg', '.scroll'].map((of) =>
        [...document.querySelectorAll(of)].find((e) => e.getClientRects().length));
    return picture.compareDocumentPosition(table) & Node.DOCUMENT_POSITION_FOLLOWING; })()";

/// Checks that a page shows its answer on a desk and on a telephone.
async fn shows_its_answer(browser: &Browser, page: &Path) {
    let name = page.display();
    for (width, height) in [(1280, 1000), (390, 844)] {
        browser.size(width, height);
        browser.open(page).await;
        browser.until(&format!("innerWidth === {width}")).await;
        let fits = "document.documentElement.scrollWidth === document.documentElement.clientWidth";
        assert!(browser.holds(fits).await, "{name} at {width}");
        assert!(browser.holds(PICTURE_FIRST).await, "{name} at {width}");
        let narrowest = browser.number(NARROWEST).await;
        assert!(narrowest >= 7.0, "{name} at {width}: points of {narrowest} px");
        if width == 1280 {
            assert_eq!(browser.value(SCROLLED).await, json!([]), "{name}");
        }
    }
}

#[tokio::test]
async fn pages_of_sweeps_searches_and_labs_fit_a_desk_and_a_telephone() {
    let Some(browser) = browser().await else { return };
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&ENGINE));
    for (what, flags) in [("sweep", SWEEP), ("search", SEARCH)] {
        let ended = run_patiently(&mut command(what, &mock, &folder, flags)).with_code(0);
        let page = saved(&ended, what, &folder).join(format!("{what}.html"));
        shows_its_answer(&browser, &page).await;
    }
    let lab = Files::new("repeats = 2", "max-concurrency = [1, 8]");
    lab.made().with_code(0);
    shows_its_answer(&browser, &lab.path().join("out/lab.html")).await;
}
