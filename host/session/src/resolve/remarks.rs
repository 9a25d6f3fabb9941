//! What a user should know about the loading of plugins.

use std::time::Duration;

use plugins::Plugin;

/// Compilation that takes longer than this is reported.
const SLOW: Duration = Duration::from_secs(1);

/// What is worth a line about the loading of a plugin.
pub fn of(plugin: &Plugin) -> Vec<String> {
    let loading = &plugin.loading;
    let warnings = (loading.warnings.iter()).map(|warning| format!("warning: {warning}"));
    let slow = (loading.compiled_in)
        .filter(|took| *took > SLOW)
        .map(|took| {
            let kept = match loading.kept {
                true => "cached for next time",
                false => "not cached, so the next run compiles it again",
            };
            format!(
                "compiled plugin {} ({:.1} MB) in {:.1} s; {kept}",
                plugin.asked,
                plugin.size as f64 / 1e6,
                took.as_secs_f64()
            )
        });
    warnings.chain(slow).collect()
}
