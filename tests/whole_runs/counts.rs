//! Token counts that only some servers report, from the engine's reply to the figures of the run.

use result::summary::{Drafts, Reported};

use super::{base, with_backend};
use crate::support::trial::RunResult;

/// Counts that every one of five answers reports, with 40 tokens of input and 11 of output each.
const COUNTS: &str = "[counts]\ndraft-tokens = 8\naccepted-draft-tokens = 6\ninput-image-tokens = 16\n\
    input-video-tokens = 4\ninput-audio-tokens = 0\noutput-audio-tokens = 2\n";

fn reported(total: u64, share: f64) -> Option<Reported> {
    Some(Reported { total, answers: 5, share: Some(share) })
}

/// A line of the text, without the spaces between label and value.
fn has_line(ran: &RunResult, label: &str, value: &str) -> bool {
    let mut lines = ran.text.lines();
    lines.any(|line| {
        let rest = line.strip_prefix(label);
        rest.is_some_and(|rest| rest.trim_start() == value)
    })
}

#[tokio::test(start_paused = true)]
async fn further_counts_are_summed() {
    for (plugin, route) in [
        ("openai", "completions"),
        ("openai", "chat"),
        ("vllm", "completions"),
        ("vllm", "chat"),
        ("sglang", "generate"),
        ("sglang", "chat"),
    ] {
        for stream in [true, false] {
            let ran = with_backend(plugin)
                .with(&format!("backend.config.route = '{route}'\nrequest.stream = {stream}"))
                .against(COUNTS)
                .run()
                .await;
            let about = format!("{plugin} {route} {stream}\n{}", ran.text);
            assert_eq!(ran.failures(), [], "{about}");
            let tokens = &ran.summary.tokens;
            assert_eq!((tokens.input.total, tokens.output.total), (Some(200), Some(55)));
            let drafts = Drafts {
                proposed: Some(40),
                accepted: reported(30, 30.0 / 55.0),
                acceptance: Some(0.75),
            };
            assert_eq!(tokens.drafts, Some(drafts), "{about}");
            assert_eq!(tokens.input_image, reported(80, 0.4), "{about}");
            assert_eq!(tokens.input_video, reported(20, 0.1), "{about}");
            assert_eq!(tokens.input_audio, reported(0, 0.0), "{about}");
            // SGLang's own route does not count it.
            let of_output = reported(10, 10.0 / 55.0).filter(|_| route != "generate");
            assert_eq!(tokens.output_audio, of_output, "{about}");
            for (metric, value) in [
                ("draft-tokens", 8.0),
                ("accepted-draft-tokens", 6.0),
                ("draft-acceptance", 0.75),
                ("input-image-tokens", 16.0),
                ("input-video-tokens", 4.0),
                ("input-audio-tokens", 0.0),
            ] {
                assert_eq!(ran.everywhere(metric), (value, 5), "{metric} {about}");
            }
            for (label, value) in [
                ("Draft tokens accepted:", "30 of 40 (75.0 %)"),
                ("Image tokens, of the input:", "80 (40.0 %)"),
                ("Video tokens, of the input:", "20 (10.0 %)"),
                ("Audio tokens, of the input:", "0 (0.0 %)"),
            ] {
                assert!(has_line(&ran, label, value), "{label} {about}");
            }
        }
    }
}

/// The engines whose routes scripts play, with the counts where these have them.
#[tokio::test(start_paused = true)]
async fn counts_of_other_engines() {
    let llamacpp = include_str!("../../host/base/mock/engines/llamacpp.toml");
    let drafts = llamacpp.replace(
        r#""predicted_ms":{decode-ms}"#,
        r#""predicted_ms":{decode-ms},"draft_n":8,"draft_n_accepted":6"#,
    );
    let ran = with_backend("llamacpp").against(&drafts).run().await;
    assert_eq!(ran.failures(), [], "{}", ran.text);
    let tokens = &ran.summary.tokens;
    let counted = tokens.drafts.unwrap();
    assert_eq!(counted.proposed, Some(40));
    assert_eq!(counted.acceptance, Some(0.75));
    assert_eq!(tokens.input_image, None);

    let gemini = include_str!("../../host/base/mock/engines/gemini.toml");
    let modalities = gemini.replace(
        r#""cachedContentTokenCount""#,
        r#""promptTokensDetails":[{"modality":"TEXT","tokenCount":24},{"modality":"IMAGE","tokenCount":16}],"candidatesTokensDetails":[{"modality":"AUDIO","tokenCount":2}],"cachedContentTokenCount""#,
    );
    let ran = with_backend("gemini")
        .with("request.ignore-eos = false\ntarget.model = 'gemini-mock'")
        .with("target.base-url = 'http://127.0.0.1:8000'")
        .against(&modalities)
        .run()
        .await;
    assert_eq!(ran.failures(), [], "{}", ran.text);
    let tokens = &ran.summary.tokens;
    assert_eq!(tokens.input_image, reported(80, 0.4));
    assert_eq!(tokens.output_audio, reported(10, 10.0 / 55.0));
    assert_eq!((tokens.drafts, tokens.input_audio), (None, None));
    assert!(!ran.text.contains("Draft tokens"), "{}", ran.text);
}

/// An engine that reports none of them leaves no trace of them.
#[tokio::test(start_paused = true)]
async fn unreported_counts_are_not_shown() {
    let ran = base().run().await;
    let tokens = serde_json::to_string(&ran.summary.tokens).unwrap();
    for absent in ["drafts", "image", "video", "audio"] {
        assert!(!tokens.contains(absent), "{tokens}");
        assert!(!ran.text.to_lowercase().contains(absent), "{}", ran.text);
    }
    for absent in ["draft-tokens", "draft-acceptance", "input-image-tokens"] {
        assert!(ran.summary.metric(absent).is_none(), "{absent}");
    }
}
