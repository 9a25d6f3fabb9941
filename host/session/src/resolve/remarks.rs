//! What a user should know of how plugins were loaded.

use std::time::Duration;

use plugins::Plugin;

/// Compiling for longer than this is told.
const SLOW: Duration = Duration::from_secs(1);

/// What is worth a line of how a plugin was loaded.
pub fn of(plugin: &Plugin) -> Vec<String> {
    let loading = &plugin.loading;
    let warnings = (loading.warnings.iter()).map(|warning| format!("warning: {warning}"));
    let slow = (loading.compiled_in)
        .filter(|took| *took > SLOW)
        .map(|took| {
            let kept = match loading.kept {
                true => "kept for next time",
                false => "not kept, so next time takes as long",
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
