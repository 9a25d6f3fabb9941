//! Makes a sound for a speech model, and its WAV file: syllables of a voice's pitch and overtones,
//! with pauses between them and noise over all.

use std::f32::consts::TAU;

use runner_plugin::random::Python;

/// Loudness, as a part of the largest value of a sample.
const LOUDNESS: f32 = 0.6 * i16::MAX as f32;

/// A WAV file of one channel with 16 bits a sample: `length` samples at `rate` a second. `noise` is
/// its share, from 0 to 1.
pub fn wav(random: &mut Python, rate: u32, length: usize, noise: f64) -> Vec<u8> {
    let data = 2 * length as u32;
    let mut file = Vec::with_capacity(44 + 2 * length);
    file.extend(b"RIFF");
    file.extend((36 + data).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16_u32.to_le_bytes());
    // Samples as they are, and one channel.
    file.extend(1_u16.to_le_bytes());
    file.extend(1_u16.to_le_bytes());
    file.extend(rate.to_le_bytes());
    file.extend((2 * rate).to_le_bytes());
    file.extend(2_u16.to_le_bytes());
    file.extend(16_u16.to_le_bytes());
    file.extend(b"data");
    file.extend(data.to_le_bytes());
    let noise = noise as f32;
    let mut written = 0;
    while written < length {
        // A syllable of 120 to 300 ms, and a pause of up to 80.
        let span = |milliseconds: u64| (milliseconds * u64::from(rate) / 1000) as usize;
        let voiced = span(120 + random.below(181)).max(1);
        let silent = span(random.below(81));
        let pitch = 90.0 + 160.0 * random.random() as f32;
        let glide = 0.8 + 0.4 * random.random() as f32;
        let overtones = [0; 4].map(|_: u8| random.random() as f32);
        let mut phase = 0.0;
        for at in 0..voiced + silent {
            if written == length {
                break;
            }
            let place = at as f32 / voiced as f32;
            let tone = if at < voiced {
                phase += pitch * (1.0 + (glide - 1.0) * place) / rate as f32;
                // The phase is kept small: the rounding error of a large phase would be audible.
                phase -= phase.floor();
                let over: f32 = (1..)
                    .zip(overtones)
                    .map(|(times, loud)| loud * wave(times as f32 * phase) / times as f32)
                    .sum();
                // It rises and falls.
                over / 2.1 * 4.0 * place * (1.0 - place)
            } else {
                0.0
            };
            let hiss = random.bits(16) as f32 / 32_768.0 - 1.0;
            let value = (1.0 - noise) * tone + noise * hiss;
            file.extend(((value * LOUDNESS) as i16).to_le_bytes());
            written += 1;
        }
    }
    file
}

/// A sine of turns, by Bhaskara's approximation in whole arithmetic operations: the same on every
/// machine, unlike a library's sine.
fn wave(turns: f32) -> f32 {
    let turns = turns - turns.floor();
    let (half, sign) = if turns < 0.5 { (turns, 1.0) } else { (turns - 0.5, -1.0) };
    let x = half * TAU;
    let product = x * (TAU / 2.0 - x);
    sign * 16.0 * product / (5.0 * (TAU / 2.0) * (TAU / 2.0) - 4.0 * product)
}
