//! The files are valid, have the requested sizes, and depend on the seed alone.

use runner_plugin::{Dataset, Error, Media, Part, Sample, Tokenizer};
use runner_plugin_testing::datasets::{self, check_samples, invalid_config};
use runner_plugin_testing::files::Named;
use runner_plugin_testing::tokenizer::{Pairs, StandIn};
use zune_jpeg::JpegDecoder;

use super::{Images, draw, jpeg};

fn open(config: &str, seed: u64) -> Result<Images, Error> {
    datasets::open(config, seed, None, Named::default(), StandIn)
}

fn parts(sample: &Sample) -> (&str, Vec<&Media>) {
    let messages = sample.prompt.messages();
    let [Part::Text(text), images @ ..] = &messages[0].parts[..] else {
        panic!("expected a text, got {:?}", messages[0].parts)
    };
    let mut shown = Vec::new();
    for part in images {
        match part {
            Part::Image(media) => shown.push(media),
            other => panic!("expected an image, got {other:?}"),
        }
    }
    (text, shown)
}

/// Width, height and pixels of a JPEG.
fn decoded(bytes: &[u8]) -> (usize, usize, Vec<u8>) {
    let mut decoder = JpegDecoder::new(std::io::Cursor::new(bytes));
    let pixels = decoder.decode().expect("a JPEG");
    let (width, height) = decoder.dimensions().expect("a size");
    (width, height, pixels)
}

/// Width, height and pixels of a PNG.
fn unpacked(bytes: &[u8]) -> (usize, usize, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("pixels");
    (info.width as usize, info.height as usize, pixels)
}

#[test]
fn a_jpeg_shows_the_drawn_image() {
    for (width, height) in [(64, 48), (13, 9), (8, 17)] {
        let mut random = runner_plugin::random::Python::new(1);
        let pixels = draw::pixels(&mut random, width, height, 0.0);
        let file = jpeg::write(width as u16, height as u16, &pixels, 95);
        let (wide, high, seen) = decoded(&file);
        assert_eq!((wide, high), (width as usize, height as usize));
        let off = pixels.iter().zip(&seen).map(|(one, other)| {
            let off = f64::from(*one) - f64::from(*other);
            off * off
        });
        let mean = off.sum::<f64>() / pixels.len() as f64;
        assert!(mean < 40.0, "{width}x{height}: {mean}");
    }
    // Every coefficient is as large as it gets.
    let stark: Vec<u8> =
        (0..3 * 64 * 64).map(|at| if (at / 3) % 2 == 0 { 0 } else { 255 }).collect();
    let (.., seen) = decoded(&jpeg::write(64, 64, &stark, 100));
    let off = stark.iter().zip(&seen);
    assert!(off.clone().all(|(one, other)| one.abs_diff(*other) < 16));
}

#[test]
fn images_have_the_requested_sizes() {
    let config = r#"{"images": 3, "sizes": ["32x24:3", "16x40:1"], "format": "png"}"#;
    let samples = open(config, 5).unwrap().next(40).unwrap();
    let mut small = 0;
    for sample in &samples {
        let (_, images) = parts(sample);
        assert_eq!(images.len(), 3);
        for image in images {
            assert_eq!(image.media_type, "image/png");
            let (width, height, pixels) = unpacked(&image.bytes);
            assert_eq!(pixels.len(), 3 * width * height);
            match (width, height) {
                (32, 24) => {}
                (16, 40) => small += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    // A quarter of 120.
    assert!((15..=45).contains(&small), "{small}");
    let config = r#"{"width": {"distribution": "uniform", "min": 20, "max": 30}, "height": 16}"#;
    for sample in open(config, 5).unwrap().next(10).unwrap() {
        let (_, images) = parts(&sample);
        let (width, height, _) = decoded(&images[0].bytes);
        assert!((20..=30).contains(&width) && height == 16);
    }
}

#[test]
fn noise_decides_how_well_an_image_compresses() {
    let size = |noise: &str, format: &str| {
        let config = format!(r#"{{"sizes": ["128x128"], "noise": {noise}, "format": "{format}"}}"#);
        let samples = open(&config, 5).unwrap().next(1).unwrap();
        parts(&samples[0]).1[0].bytes.len()
    };
    for format in ["png", "jpeg"] {
        let sizes = ["0", "0.2", "1"].map(|noise| size(noise, format));
        assert!(sizes[0] * 2 < sizes[1] && sizes[1] < sizes[2], "{sizes:?}");
    }
    // Nothing can be saved on noise.
    assert!(size("1", "png") > 3 * 128 * 128);
}

#[test]
fn samples_depend_on_the_seed_and_not_on_the_size_of_a_call() {
    let config =
        r#"{"sizes": ["16x16"], "images": {"distribution": "uniform", "min": 0, "max": 2}}"#;
    check_samples(|seed| open(config, seed).unwrap(), &[1, 7, 13]);
}

#[test]
fn texts_have_their_number_of_tokens() {
    let config =
        r#"{"sizes": ["8x8"], "input-len": {"distribution": "uniform", "min": 5, "max": 60}}"#;
    let mut dataset: Images = datasets::open(config, 1, None, Named::default(), Pairs).unwrap();
    let mut lengths = Vec::new();
    for sample in dataset.next(40).unwrap() {
        let (text, _) = parts(&sample);
        lengths.push(Pairs.count(&[text.to_owned()], true)[0]);
    }
    assert!(lengths.iter().all(|length| (5..=60).contains(length)));
    assert!(lengths.iter().max() > lengths.iter().min());
}

#[test]
fn mistakes_name_the_key() {
    for (config, expected) in [
        (r#"{"noise": 2}"#, "`noise` is 2"),
        (r#"{"quality": 0}"#, "`quality` is 0"),
        (r#"{"sizes": ["512"]}"#, "`sizes` has `512`"),
        (r#"{"sizes": ["4x512"]}"#, "sides from 8 to 8192"),
        (r#"{"sizes": ["8x8:-1"]}"#, "`sizes`"),
        (r#"{"width": 8}"#, "`width` and `height` go together"),
        (r#"{"width": 8, "height": 8, "sizes": ["8x8"]}"#, "leave one out"),
        (r#"{"images": 1000}"#, "`images` is 1000"),
    ] {
        let message = invalid_config(open(config, 0));
        assert!(message.contains(expected), "{config}: {message}");
    }
}

#[test]
fn images_that_do_not_fit_into_memory_are_refused() {
    let refusal =
        |config: &str| invalid_config(open(config, 1).and_then(|mut dataset| dataset.next(1)));
    for config in [r#"{"sizes": ["8192x8192"]}"#, r#"{"width": 8192, "height": 8192}"#] {
        let large = refusal(config);
        assert!(
            large.starts_with(
                "an image of 8192x8192 has 67108864 pixels; expected at most 16777216"
            ),
            "{large}"
        );
    }
    let many = refusal(r#"{"sizes": ["2048x2048"], "format": "png", "noise": 1, "images": 256}"#);
    assert!(many.starts_with("the images of request 1 have more than 48 MiB"), "{many}");
}

#[test]
fn large_requests_come_few_at_a_time_and_are_the_same() {
    let config = r#"{"sizes": ["1400x1400"], "format": "png", "noise": 1}"#;
    let mut dataset = open(config, 1).unwrap();
    let first = dataset.next(40).unwrap();
    assert!((2..8).contains(&first.len()), "{}", first.len());
    let next = dataset.next(1).unwrap();
    assert_eq!(next[0].id, format!("images-{:06}", first.len() + 1));
    assert_eq!(open(config, 1).unwrap().next(1).unwrap(), first[..1]);
}
