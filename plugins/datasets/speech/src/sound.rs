//! The format and the length of a sound, by the header of its file: WAV and FLAC exactly. Of other
//! formats nothing but the type is known.

use runner_plugin::File;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sound {
    pub media_type: &'static str,
    /// The length in seconds, if the header says it.
    pub seconds: Option<f64>,
}

/// The least bytes of a chunk of WAV's that says the format.
const FORMAT: u64 = 16;

const MOST_CHUNKS: usize = 1000;

pub fn read(file: &dyn File) -> Result<Sound, String> {
    let start = file.read(0, 12)?;
    let at = |from: usize, mark: &[u8]| start.get(from..from + mark.len()) == Some(mark);
    let other = |media_type| Sound { media_type, seconds: None };
    if at(0, b"RIFF") && at(8, b"WAVE") {
        return Ok(Sound { media_type: "audio/wav", seconds: Some(wav(file)?) });
    }
    if at(0, b"fLaC") {
        return Ok(Sound { media_type: "audio/flac", seconds: flac(file)? });
    }
    let mp3 = at(0, b"ID3") || at(0, b"\xff\xfb") || at(0, b"\xff\xf3") || at(0, b"\xff\xf2");
    match () {
        () if mp3 => Ok(other("audio/mpeg")),
        () if at(0, b"OggS") => Ok(other("audio/ogg")),
        () if at(4, b"ftyp") => Ok(other("audio/mp4")),
        () if at(0, b"\x1a\x45\xdf\xa3") => Ok(other("audio/webm")),
        () if file.size() == 0 => Err("it is empty".to_owned()),
        () if at(0, b"RF64") || at(0, b"RIFX") => {
            Err("it is WAV of an unsupported kind (RF64 or RIFX); convert it to WAV or FLAC"
                .to_owned())
        }
        () => {
            Err("it is neither WAV nor FLAC, nor MP3, Ogg, MP4 or WebM, by its first bytes"
                .to_owned())
        }
    }
}

/// The seconds of a WAV file: the bytes of its sound divided by the bytes of a second.
fn wav(file: &dyn File) -> Result<f64, String> {
    let size = file.size();
    let mut place = 12;
    let mut each_second = None;
    for _ in 0..MOST_CHUNKS {
        let head = file.read(place, 8)?;
        let (Some(name), Some(length)) = (head.get(..4), number(&head, 4, 4)) else { break };
        let begin = place + 8;
        match name {
            b"fmt " => {
                let format = file.read(begin, FORMAT as u32)?;
                let (Some(rate), Some(bytes), Some(block)) =
                    (number(&format, 4, 4), number(&format, 8, 4), number(&format, 12, 2))
                else {
                    return Err("it is cut off in its header".to_owned());
                };
                if rate == 0 || bytes == 0 || block == 0 {
                    return Err(format!(
                        "its header says {rate} samples and {bytes} bytes a second, in blocks of {block}"
                    ));
                }
                each_second = Some(bytes);
            }
            b"data" => {
                let Some(bytes) = each_second else {
                    return Err("its sound comes before its format".to_owned());
                };
                let there = size.saturating_sub(begin);
                // A file that was written to a pipe states no length.
                let stated = match length {
                    0 | 0xffff_ffff => there,
                    stated => stated,
                };
                if stated > there {
                    return Err(format!(
                        "it is cut off: its header says {stated} bytes of sound, and it has {there}"
                    ));
                }
                if stated == 0 {
                    return Err("it has no sound".to_owned());
                }
                return Ok(stated as f64 / bytes as f64);
            }
            _ => {}
        }
        // A chunk of odd length has a byte behind it.
        place = begin + length + length % 2;
    }
    Err("it has no sound: no `data` in it".to_owned())
}

/// The seconds of a FLAC file, if its header says them: its samples by the samples of a second.
fn flac(file: &dyn File) -> Result<Option<f64>, String> {
    let header = file.read(4, 4 + 34)?;
    // The first block is STREAMINFO, of 34 bytes.
    let kind = header.first().map(|byte| byte & 0x7f);
    if kind != Some(0) || header.len() < 38 {
        return Err("it is cut off in its header, or has none".to_owned());
    }
    let bits = header[14..22].iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let (rate, samples) = (bits >> 44, bits & 0xf_ffff_ffff);
    if rate == 0 {
        return Err("its header says 0 samples a second".to_owned());
    }
    if file.size() <= 42 {
        return Err("it has no sound: it ends with its header".to_owned());
    }
    Ok((samples > 0).then(|| samples as f64 / rate as f64))
}

/// A number whose lowest byte comes first.
fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + width)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}
