//! Draws a picture: shapes in flat colours on a gradient, with noise over all of it. Without noise
//! a picture compresses to almost nothing, and of noise alone to nothing less; photographs are in
//! between.

use runner_plugin::random::Python;

/// Shapes in a picture.
const SHAPES: u64 = 12;

/// Pixels of red, green and blue, a line after the other. `noise` is its share, from 0 to 1.
pub fn pixels(random: &mut Python, width: u32, height: u32, noise: f64) -> Vec<u8> {
    let mut colour = || [0; 3].map(|_: u8| random.bits(8) as u8);
    let corners = [colour(), colour()];
    let (width, height) = (width as usize, height as usize);
    let mut pixels = Vec::with_capacity(3 * width * height);
    for y in 0..height {
        for x in 0..width {
            let share = (x + y) * 256 / (width + height);
            for (from, to) in corners[0].into_iter().zip(corners[1]) {
                let mixed = usize::from(from) * (256 - share) + usize::from(to) * share;
                pixels.push((mixed / 256) as u8);
            }
        }
    }
    for _ in 0..SHAPES {
        let colour = [0; 3].map(|_: u8| random.bits(8) as u8);
        let round = random.bits(1) == 1;
        let mut span = |whole: usize| {
            let length = whole / 8 + random.below(whole as u64 / 2 + 1) as usize;
            let from = random.below(whole as u64) as usize;
            (from, length.max(1))
        };
        let ((left, wide), (top, high)) = (span(width), span(height));
        for y in top..(top + high).min(height) {
            for x in left..(left + wide).min(width) {
                let place = |at: usize, from: usize, length: usize| {
                    let middle = 2 * (at - from) + 1;
                    middle.abs_diff(length) as f32 / length as f32
                };
                let (across, down) = (place(x, left, wide), place(y, top, high));
                if !round || across * across + down * down <= 1.0 {
                    let at = 3 * (y * width + x);
                    pixels[at..at + 3].copy_from_slice(&colour);
                }
            }
        }
    }
    let share = (noise * 256.0).round() as u32;
    if share > 0 {
        for four in pixels.chunks_mut(4) {
            let bytes = (random.bits(32) as u32).to_le_bytes();
            for (pixel, byte) in four.iter_mut().zip(bytes) {
                let mixed = u32::from(*pixel) * (256 - share) + u32::from(byte) * share;
                *pixel = (mixed / 256) as u8;
            }
        }
    }
    pixels
}
