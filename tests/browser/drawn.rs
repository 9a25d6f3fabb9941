//! Pages load without a complaint, and everything is drawn and named.

use std::path::Path;

use super::page;
use crate::support::browser::{Browser, browser};
use crate::support::made_up::MadeUp;
use crate::support::process::{Mock, only_run, run, runner, words};

/// Visible drawings whose marks have no extent, by their names.
const UNDRAWN: &str = "[...document.querySelectorAll('.plot > svg')]
    .filter((svg) => svg.getBoundingClientRect().width > 0)
    .filter((svg) => ![...svg.querySelectorAll('[data-column] path')].some((path) => path.getBBox().width > 5))
    .map((svg) => svg.closest('figure').id)";

/// Controls, regions and pictures without a name.
const NAMELESS: &str = "[...document.querySelectorAll('button, a, input, summary, section, nav, [role], [tabindex=\"0\"]')]
    .filter((element) => !element.closest('[hidden], .definition') && element.id !== 'live' && element.tagName !== 'PRE')
    .filter((element) => {
        const referred = (element.getAttribute('aria-labelledby') || '').split(' ').filter(Boolean)
            .map((id) => document.getElementById(id)?.textContent || '').join('');
        const label = element.getAttribute('aria-label') || referred || element.textContent || element.closest('label')?.textContent || '';
        return !label.trim();
    })
    .map((element) => element.outerHTML.slice(0, 120))";

/// Checks that a page is complete: no complaints, all charts drawn and named, headings in order.
async fn whole(browser: &Browser, path: &Path, charts: f64) {
    browser.open(path).await;
    browser.until("document.readyState === 'complete'").await;
    assert_eq!(browser.console(), [""; 0]);
    let shown = "[...document.querySelectorAll('.plot > svg')].filter((svg) => svg.getBoundingClientRect().width > 0).length";
    assert_eq!(browser.number(shown).await, charts);
    assert_eq!(browser.value(UNDRAWN).await, serde_json::json!([]));
    assert_eq!(browser.value(NAMELESS).await, serde_json::json!([]));
    let levels = browser
        .text("[...document.querySelectorAll('h1, h2, h3, h4')].map((heading) => heading.tagName[1]).join('')")
        .await;
    assert!(levels.starts_with('1') && levels.matches('1').count() == 1, "{levels}");
    let levels: Vec<u32> = levels.chars().filter_map(|level| level.to_digit(10)).collect();
    assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{levels:?}");
    for landmark in ["header nav", "main", "footer", "a.skip[href='#main']"] {
        assert!(
            browser.holds(&format!("document.querySelector({landmark:?})")).await,
            "{landmark}"
        );
    }
}

#[tokio::test]
async fn a_page_of_ten_thousand_requests_is_whole_and_small() {
    let Some(browser) = browser().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let made_up = MadeUp { requests: 10_000, ..MadeUp::default() };
    let path = page(&[made_up.write(folder.path())], folder.path());
    let size = std::fs::metadata(&path).unwrap().len();
    assert!(size < 2_000_000, "{size} bytes");
    whole(&browser, &path, 14.0).await;
}

#[tokio::test]
async fn a_page_of_a_real_run_is_whole() {
    let Some(browser) = browser().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "2ms"]);
    let mut command = runner();
    let line = "--backend vllm --dataset-name random --num-prompts 60 --random-input-len 64 --random-output-len 16 --random-range-ratio 0.5 --request-rate 40 --max-concurrency 4 --seed 1";
    command.args(words(line)).args(["--base-url", &mock.url]);
    run(command.current_dir(folder.path())).with_code(0);
    let made = only_run(&folder.path().join("runs")).unwrap();
    let path = page(std::slice::from_ref(&made), folder.path());
    assert!(std::fs::metadata(&path).unwrap().len() < 2_000_000);
    let drawn = std::fs::read(&path).unwrap();
    assert_eq!(drawn, std::fs::read(page(&[made], folder.path())).unwrap());
    whole(&browser, &path, 14.0).await;
}

#[tokio::test]
async fn a_page_of_two_runs_is_whole() {
    let Some(browser) = browser().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let one = MadeUp::default().write(folder.path());
    let two = MadeUp { version: "0.11.0", slower: 1.2, ..MadeUp::default() };
    whole(&browser, &page(&[one, two.write(folder.path())], folder.path()), 17.0).await;
    let labels = "[...document.querySelectorAll('#ttft-ecdf .legend button')].map((b) => b.textContent).join('|')";
    assert_eq!(browser.text(labels).await, "vllm 0.10.1|vllm 0.11.0");
    // A box takes a run out of every chart that shows both.
    browser.press("input[data-run='1']").await;
    let on_show = |run: u32| {
        format!(
            "[...document.querySelectorAll('figure[data-runs] .plot > svg .k{run}')].filter((g) => g.getClientRects().length).length"
        )
    };
    browser.until(&format!("{} === 0", on_show(1))).await;
    assert!(browser.number(&on_show(0)).await > 0.0);
}

/// A server's message is shown as text, and has no effect.
#[tokio::test]
async fn text_of_a_server_is_inert() {
    let Some(browser) = browser().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let hostile = MadeUp {
        message: "</script><img src=x onerror=\"document.title='taken over'\"><script>document.title='taken over'</script>",
        ..MadeUp::default()
    };
    whole(&browser, &page(&[hostile.write(folder.path())], folder.path()), 14.0).await;
    assert!(!browser.text("document.title").await.contains("taken"));
    assert_eq!(browser.number("document.images.length").await, 0.0);
    let script = "document.querySelector('#failures').parentElement.textContent";
    assert!(browser.text(script).await.contains("</script><img src=x onerror="));
}
