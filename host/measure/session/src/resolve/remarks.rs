//! Remarks for a user before a run begins: about the loading of plugins, and about who gets
//! secrets.

use std::time::Duration;

use model::target::{Target, listed};
use plugins::Plugin;
use scenario::plan::ApiKey;

/// Compilation that takes longer than this is reported.
const SLOW: Duration = Duration::from_secs(1);

pub fn for_plugin(plugin: &Plugin) -> Vec<String> {
    let loading = &plugin.loading;
    let warnings = (loading.warnings.iter()).map(|warning| format!("warning: {warning}"));
    let slow = (loading.compiled_in).filter(|took| *took > SLOW).map(|took| {
        let cached = if loading.kept {
            "cached for next time"
        } else {
            "not cached, so the next run compiles it again"
        };
        format!(
            "compiled plugin {} ({:.1} MB) in {:.1} s; {cached}",
            plugin.name,
            plugin.size as f64 / 1e6,
            took.as_secs_f64()
        )
    });
    warnings.chain(slow).collect()
}

/// Names the secrets that the targets get; nothing if there are none.
pub fn sent(key: &ApiKey, headers: &[String], targets: &[Target]) -> Option<String> {
    let key = (key.variable()).map(|variable| format!("the API key from {variable}"));
    let verb = match usize::from(key.is_some()) + headers.len() {
        0 => return None,
        1 => "goes",
        _ => "go",
    };
    let headers = match headers {
        [] => None,
        [only] => Some(format!("the header {only}")),
        several => Some(format!("the headers {}", several.join(", "))),
    };
    let what: Vec<String> = key.into_iter().chain(headers).collect();
    let what = what.join(" and ");
    Some(format!("note: {what} {verb} to {}", listed(targets)))
}
