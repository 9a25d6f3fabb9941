//! The metrics pages of servers.

use std::collections::BTreeSet;

use model::units::Nanos;
use series::entry::MOST_SERIES;
use series::page::{MOST_LABEL_BYTES, MOST_SAMPLES};
use series::{Course, Encoder, Entry, Head, Recording, page};

/// Two pages of a server: values have bounds, lines read back, and JSON has every figure.
pub fn metrics(data: &[u8]) {
    let mut encoder =
        Encoder::new(Head { targets: vec!["http://a".to_owned()], every_ns: Nanos(1_000_000_000) });
    let mut entries = vec![encoder.head()];
    let mut last = 0;
    for text in data.split(|byte| *byte == 0).take(8) {
        let text = String::from_utf8_lossy(text);
        let read = page::read(&text);
        assert!(read.samples.len() <= MOST_SAMPLES);
        for sample in &read.samples {
            let labels = sample.labels.iter();
            let bytes: usize = labels.map(|(name, value)| name.len() + value.len()).sum();
            // Cleaning makes three bytes of one.
            assert!(bytes <= 3 * MOST_LABEL_BYTES);
            assert!(sample.value.is_finite());
        }
        last += 1_000_000_000;
        let at = Nanos(last);
        entries.extend(encoder.page(0, (at, at), &text));
    }
    let (mut recording, mut again) = (Recording::default(), Recording::default());
    let mut introduced = BTreeSet::new();
    for entry in entries {
        match &entry {
            Entry::Series(series) => assert!(introduced.insert(series.id)),
            Entry::Sample(sample) => {
                assert!(sample.values.iter().all(|(id, _)| introduced.contains(id)));
            }
            Entry::Head(_) | Entry::Failed(_) => {}
        }
        let line = serde_json::to_string(&entry).expect("an entry is JSON");
        again.enter(serde_json::from_str(&line).expect("a line is an entry"));
        recording.enter(entry);
    }
    assert!(introduced.len() <= MOST_SERIES);
    assert_eq!(recording, again);
    let whole = (Nanos::ZERO, Nanos(last + 1));
    if let Some(figures) = recording.figures(whole) {
        let text = serde_json::to_string(&figures).expect("figures are JSON");
        serde_json::from_str::<series::ServerSeries>(&text).expect("and read back");
        assert!((0.0..=1.0).contains(&figures.covered));
        for queue in &figures.queues {
            assert!((0.0..=1.0 + 1e-9).contains(&queue.queued), "{queue:?}");
        }
    }
    assert!(Course::over(&recording, &[whole]).0.iter().all(|line| line.values.len() == 1));
}
