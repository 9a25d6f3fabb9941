//! Files of recorded traces, which the dataset `trace` replays.

use runner_plugin::Error;
use runner_plugin_testing::datasets::{open, read};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::StandIn;
use trace_file::Trace;

use crate::bytes::first;

/// A file: refused as input, or replayed with prompts within the bounds. Sizes of calls make no
/// difference.
pub fn trace_file(data: &[u8]) {
    let (choice, data) = first(data);
    let pick = |bit: u8, given: [&'static str; 2]| given[usize::from(choice >> bit & 1)];
    let config = format!(
        r#"{{"max-input": 64, "max-output": 64, "on-too-long": "{}", "on-wrong-blocks": "{}"{}{}}}"#,
        pick(0, ["truncate", "drop"]),
        pick(1, ["repair", "error"]),
        pick(2, ["", r#", "replay": "sessions""#]),
        pick(3, ["", r#", "format": "vllm-timed""#]),
    );
    let replayed = |limit| {
        let files = Named::default().with_bytes("data", data);
        read(&mut open::<Trace>(&config, 7, None, files, StandIn)?, limit)
    };
    match replayed(3) {
        Ok(samples) => {
            assert!(
                samples.iter().all(|sample| sample.output_tokens.is_none_or(|most| most <= 64))
            );
            assert!(samples.iter().all(|sample| sample.bytes() <= 4096 + 3 * data.len()));
            assert_eq!(replayed(1).expect("the same file"), samples);
        }
        Err(Error::InvalidInput(message)) => assert!(!message.is_empty()),
        Err(other) => panic!("{config}: {other:?}"),
    }
}
