//! The sound of a sample in the form of `/v1/realtime`: PCM of 16 bits, one channel, at a rate that
//! the API sets, in pieces.

use runner_plugin::{Error, Media, Sample};

pub struct Piece {
    /// Its samples, in base64.
    pub base64: String,
    pub nanoseconds: u64,
}

/// The samples of a WAV file.
pub fn samples(sample: &Sample, media: &Media, path: &str, rate: u32) -> Result<Vec<i16>, Error> {
    let wrong = |cause: String| {
        Error::InvalidInput(format!(
            "sample {}: {cause}, and {path} takes PCM of 16 bits, one channel and {rate} Hz; convert the sounds to such \
             WAV files, or set the dataset's sample rate",
            sample.id
        ))
    };
    let unread = |error: hound::Error| {
        let kind = &media.media_type;
        wrong(format!("its sound ({kind}) is not a readable WAV file ({error})"))
    };
    let mut reader = hound::WavReader::new(&*media.bytes).map_err(unread)?;
    let spec = reader.spec();
    let is_taken = spec.channels == 1
        && spec.sample_rate == rate
        && spec.bits_per_sample == 16
        && spec.sample_format == hound::SampleFormat::Int;
    if !is_taken {
        return Err(wrong(format!(
            "its sound has {} bits, {} channels and {} Hz",
            spec.bits_per_sample, spec.channels, spec.sample_rate
        )));
    }
    let samples: Result<Vec<i16>, _> = reader.samples().collect();
    let samples = samples.map_err(unread)?;
    if samples.is_empty() { Err(wrong("its sound has no samples".to_owned())) } else { Ok(samples) }
}

/// Cuts these samples into pieces of this many milliseconds; the last may be shorter.
pub fn pieces(samples: &[i16], rate: u32, milliseconds: u32) -> impl Iterator<Item = Piece> + '_ {
    let each = (u64::from(rate) * u64::from(milliseconds) / 1_000).max(1) as usize;
    samples.chunks(each).map(move |piece| {
        let bytes: Vec<u8> = piece.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let media = Media { media_type: "audio/pcm".to_owned(), bytes };
        Piece {
            base64: media.base64(),
            nanoseconds: piece.len() as u64 * 1_000_000_000 / u64::from(rate),
        }
    })
}

/// The milliseconds of PCM of 16 bits, one channel and this rate, in base64.
pub fn milliseconds(base64: &str, rate: u32) -> f64 {
    let digits = base64.trim_end_matches('=').len();
    let samples = digits * 3 / 4 / 2;
    samples as f64 * 1_000.0 / f64::from(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_plugin::Prompt;

    fn wav(channels: u16, rate: u32, samples: &[i16]) -> Media {
        let spec = hound::WavSpec {
            channels,
            sample_rate: rate,
            bits_per_sample: 16,
            sample_format: hound::SampleFormat::Int,
        };
        let mut bytes = std::io::Cursor::new(Vec::new());
        let mut writer = hound::WavWriter::new(&mut bytes, spec).unwrap();
        for sample in samples {
            writer.write_sample(*sample).unwrap();
        }
        writer.finalize().unwrap();
        Media { media_type: "audio/wav".to_owned(), bytes: bytes.into_inner() }
    }

    fn read(media: &Media) -> Result<Vec<i16>, String> {
        let sample = Sample::new("a", Prompt::Text(String::new()));
        samples(&sample, media, "/v1/realtime", 16_000).map_err(|error| match error {
            Error::InvalidInput(message) => message,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn pieces_hold_every_sample_in_order() {
        let spoken: Vec<i16> = (-2_000..2_001).collect();
        let samples = read(&wav(1, 16_000, &spoken)).unwrap();
        let pieces: Vec<Piece> = pieces(&samples, 16_000, 100).collect();
        let lengths: Vec<u64> = pieces.iter().map(|piece| piece.nanoseconds).collect();
        assert_eq!(lengths, [100_000_000, 100_000_000, 50_062_500]);
        let lengths: Vec<f64> = (pieces.iter().map(|piece| &piece.base64))
            .map(|base64| milliseconds(base64, 16_000))
            .collect();
        assert_eq!(lengths, [100.0, 100.0, 50.0625]);
        let bytes = pieces.iter().flat_map(|piece| {
            let media = Media::of_base64("audio/pcm", &piece.base64);
            media.unwrap().bytes
        });
        let bytes: Vec<u8> = bytes.collect();
        let decoded: Vec<i16> =
            bytes.chunks(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
        assert_eq!(decoded, spoken);
    }

    #[test]
    fn unsupported_sound_is_refused() {
        for (media, message) in [
            (wav(2, 16_000, &[1, 2]), "16 bits, 2 channels and 16000 Hz"),
            (wav(1, 44_100, &[1]), "16 bits, 1 channels and 44100 Hz"),
            (wav(1, 16_000, &[]), "no samples"),
            (
                Media { media_type: "audio/flac".to_owned(), bytes: b"fLaC".to_vec() },
                "(audio/flac) is not a readable WAV file",
            ),
        ] {
            let refused = read(&media).unwrap_err();
            assert!(refused.contains(message), "{refused}");
        }
    }
}
