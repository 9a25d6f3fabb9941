//! The files are valid, have the requested lengths, and depend on the seed alone.

use runner_plugin::{Dataset, Error, Part, Sample};
use runner_plugin_testing::datasets::{self, check_samples, invalid_config};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::StandIn;

use super::Audio;

fn open(config: &str, seed: u64) -> Result<Audio, Error> {
    datasets::open(config, seed, None, Named::default(), StandIn)
}

/// Text, and rate and samples of each piece.
fn text_and_clips(sample: &Sample) -> (String, Vec<(u32, Vec<i16>)>) {
    let messages = sample.prompt.messages();
    let [Part::Text(text), clips @ ..] = &messages[0].parts[..] else {
        panic!("expected a text, got {:?}", messages[0].parts)
    };
    let clips = clips.iter().map(|part| {
        let Part::Audio(media) = part else { panic!("expected audio, got {part:?}") };
        assert_eq!(media.media_type, "audio/wav");
        let reader = hound::WavReader::new(media.bytes.as_slice()).expect("a WAV file");
        let format = reader.spec();
        assert_eq!((format.channels, format.bits_per_sample), (1, 16));
        let samples = reader.into_samples().collect::<Result<_, _>>();
        (format.sample_rate, samples.expect("samples"))
    });
    (text.clone(), clips.collect())
}

#[test]
fn files_have_the_requested_length() {
    let config = r#"{"milliseconds": {"distribution": "uniform", "min": 100, "max": 900}, "clips": 2,
        "sample-rate": 8000, "input-len": 20}"#;
    let mut lengths = Vec::new();
    for sample in open(config, 3).unwrap().next(12).unwrap() {
        let (text, clips) = text_and_clips(&sample);
        assert_eq!((text.len(), clips.len()), (20, 2));
        for (rate, samples) in clips {
            assert_eq!(rate, 8000);
            assert!((800..=7200).contains(&samples.len()));
            lengths.push(samples.len());
            // It is no silence, and nothing is cut off.
            let loud = samples.iter().map(|value| value.unsigned_abs()).max();
            assert!((2000..30_000).contains(&loud.unwrap()), "{loud:?}");
        }
    }
    lengths.dedup();
    assert!(lengths.len() > 10);
    let config = r#"{"milliseconds": 1500}"#;
    let samples = open(config, 3).unwrap().next(1).unwrap();
    assert_eq!(text_and_clips(&samples[0]).1[0].1.len(), 24_000);
}

#[test]
fn noise_decides_how_rough_it_is() {
    let rough = |noise: &str| {
        let config = format!(r#"{{"noise": {noise}, "milliseconds": 500}}"#);
        let samples = open(&config, 3).unwrap().next(1).unwrap();
        let (_, clips) = text_and_clips(&samples[0]);
        let steps = clips[0].1.windows(2);
        steps.map(|pair| u64::from(pair[0].abs_diff(pair[1]))).sum::<u64>()
    };
    let roughness = ["0", "0.2", "1"].map(rough);
    assert!(roughness[0] < roughness[1] && roughness[1] < roughness[2]);
}

#[test]
fn samples_depend_on_the_seed_and_not_on_the_size_of_a_call() {
    let config =
        r#"{"milliseconds": 50, "clips": {"distribution": "uniform", "min": 0, "max": 2}}"#;
    check_samples(|seed| open(config, seed).unwrap(), &[1, 7, 13]);
}

#[test]
fn mistakes_name_the_key() {
    for (config, expected) in [
        (r#"{"noise": -1}"#, "`noise` is -1"),
        (r#"{"sample-rate": 16}"#, "`sample-rate` is 16"),
        (r#"{"milliseconds": 0}"#, "`milliseconds` is 0"),
    ] {
        let message = invalid_config(open(config, 0));
        assert!(message.contains(expected), "{config}: {message}");
    }
}

#[test]
fn audio_that_does_not_fit_into_memory_is_refused() {
    let refusal =
        |config: &str| invalid_config(open(config, 1).and_then(|mut dataset| dataset.next(1)));
    let large = refusal(r#"{"milliseconds": 3600000, "clips": 50}"#);
    assert!(
        large.starts_with("`clips`, `milliseconds` and `sample-rate` give requests of up to 5493 MiB; expected at most 48"),
        "{large}"
    );
    // Rare numbers are refused when they are drawn.
    let rare = r#"{"milliseconds": {"distribution": "histogram", "bins": [{"value": 1, "weight": 9999}, {"value": 3600000, "weight": 1}]}, "sample-rate": 8000}"#;
    let mut dataset = open(rare, 1).unwrap();
    let refused = (0..100).map(|_| dataset.next(1000)).find(Result::is_err);
    let message = invalid_config(refused.expect("a refusal"));
    assert!(
        message.ends_with("has more than 48 MiB: set fewer `clips`, fewer `milliseconds`, or a lower `sample-rate`"),
        "{message}"
    );
}
