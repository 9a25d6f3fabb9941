//! The small notations of flags and keys.

use model::target::Target;
use model::{duration, redact};
use reader::{ScenarioError, Size, toml_text};
use result::figure::Figure;
use result::threshold::Threshold;
use scenario::{Scenario, keys};

use crate::bytes::first;

/// A word on the command line: refused with a message, or written in a form that reads back.
pub fn words(data: &[u8]) {
    let (choice, data) = first(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    match choice % 9 {
        0 => {
            if let Some(span) = answer(duration::parse(text)) {
                assert_eq!(duration::parse(&duration::format(span)), Ok(span));
            }
        }
        1 => {
            answer(duration::milliseconds(text));
        }
        2 => {
            if let Some(threshold) = answer(text.parse::<Threshold>()) {
                assert_eq!(threshold.to_string().parse(), Ok(threshold));
            }
        }
        3 => {
            if let Some(figure) = answer(text.parse::<Figure>()) {
                assert_eq!(figure.to_string().parse(), Ok(figure));
            }
        }
        4 => {
            if let Some(target) = answer(Target::parse(text)) {
                assert!(!target.host().is_empty());
                assert!(target.path("/v1").ends_with("/v1"));
            }
        }
        5 => {
            answer(Size::parse(text));
        }
        6 => {
            let (scenario, problems) = Scenario::assigned(&[text.to_owned()]);
            if problems.is_empty() {
                scenario.entries();
            } else {
                assert!(!ScenarioError::new(problems).to_string().is_empty());
            }
        }
        7 => {
            let flags: Vec<_> = keys().iter().filter(|key| key.flag.is_some()).collect();
            let (which, text) = first(text.as_bytes());
            let key = flags[usize::from(which) % flags.len()];
            let words: Vec<String> =
                String::from_utf8_lossy(text).split('\u{1f}').map(str::to_owned).collect();
            let mut scenario = Scenario::default();
            let flag = key.flag.as_ref().map_or("", |flag| flag.long);
            if answer(scenario.say(&key.path, flag, &words)).is_some() {
                scenario.entries();
                let _ = scenario.validate();
            }
        }
        _ => {
            redact::command(text);
            let line = toml_text::string(text);
            assert!(!line.contains('\n'), "{line:?}");
        }
    }
}

/// Returns the value that was read; absent if it was refused, with a message.
fn answer<T, E: ToString>(read: Result<T, E>) -> Option<T> {
    read.map_err(|error| assert!(!error.to_string().is_empty())).ok()
}
