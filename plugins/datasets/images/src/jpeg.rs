//! Writes a JPEG: baseline, three components without subsampling, with the tables of ITU-T T.81,
//! annex K, for luminance. <https://www.w3.org/Graphics/JPEG/itu-t81.pdf>

/// The usual order of coefficients: from the lowest frequencies to the highest.
const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// Divisors of coefficients at quality 50, in that order: table K.1.
const QUANTA: [u16; 64] = [
    16, 11, 12, 14, 12, 10, 16, 14, 13, 14, 18, 17, 16, 19, 24, 40, 26, 24, 22, 22, 24, 49, 35, 37,
    29, 40, 58, 51, 61, 60, 57, 51, 56, 55, 64, 72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81,
    87, 95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99,
];

/// The number of codes of each length, and their values: tables K.3 and K.5.
const DC_LENGTHS: [u8; 16] = [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0];
const DC_VALUES: [u8; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
const AC_LENGTHS: [u8; 16] = [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125];
const AC_VALUES: [u8; 162] = [
    1, 2, 3, 0, 4, 17, 5, 18, 33, 49, 65, 6, 19, 81, 97, 7, 34, 113, 20, 50, 129, 145, 161, 8, 35,
    66, 177, 193, 21, 82, 209, 240, 36, 51, 98, 114, 130, 9, 10, 22, 23, 24, 25, 26, 37, 38, 39,
    40, 41, 42, 52, 53, 54, 55, 56, 57, 58, 67, 68, 69, 70, 71, 72, 73, 74, 83, 84, 85, 86, 87, 88,
    89, 90, 99, 100, 101, 102, 103, 104, 105, 106, 115, 116, 117, 118, 119, 120, 121, 122, 131,
    132, 133, 134, 135, 136, 137, 138, 146, 147, 148, 149, 150, 151, 152, 153, 154, 162, 163, 164,
    165, 166, 167, 168, 169, 170, 178, 179, 180, 181, 182, 183, 184, 185, 186, 194, 195, 196, 197,
    198, 199, 200, 201, 202, 210, 211, 212, 213, 214, 215, 216, 217, 218, 225, 226, 227, 228, 229,
    230, 231, 232, 233, 234, 241, 242, 243, 244, 245, 246, 247, 248, 249, 250,
];

/// A picture of `width` by `height` pixels of red, green and blue, at a quality from 1 to 100.
pub fn write(width: u16, height: u16, pixels: &[u8], quality: u8) -> Vec<u8> {
    let quanta = quanta(quality);
    let mut file = vec![0xff, 0xd8];
    segment(&mut file, 0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
    let mut table = vec![0];
    table.extend(quanta);
    segment(&mut file, 0xdb, &table);
    let mut frame = vec![8];
    frame.extend(height.to_be_bytes());
    frame.extend(width.to_be_bytes());
    frame.push(3);
    for component in 1..=3 {
        frame.extend([component, 0x11, 0]);
    }
    segment(&mut file, 0xc0, &frame);
    segment(&mut file, 0xc4, &[&[0][..], &DC_LENGTHS, &DC_VALUES].concat());
    segment(&mut file, 0xc4, &[&[0x10][..], &AC_LENGTHS, &AC_VALUES].concat());
    segment(&mut file, 0xda, &[3, 1, 0, 2, 0, 3, 0, 0, 63, 0]);
    scan(&mut file, usize::from(width), usize::from(height), pixels, &quanta);
    file.extend([0xff, 0xd9]);
    file
}

fn segment(file: &mut Vec<u8>, marker: u8, content: &[u8]) {
    file.extend([0xff, marker]);
    file.extend((content.len() as u16 + 2).to_be_bytes());
    file.extend(content);
}

/// The divisors at a quality, by the formula of the Independent JPEG Group.
fn quanta(quality: u8) -> [u8; 64] {
    let quality = i32::from(quality.clamp(1, 100));
    let scale = if quality < 50 { 5000 / quality } else { 200 - 2 * quality };
    QUANTA.map(|quantum| ((i32::from(quantum) * scale + 50) / 100).clamp(1, 255) as u8)
}

/// The codes of a table, by value: the code and its length.
fn codes(lengths: &[u8; 16], values: &[u8]) -> [(u16, u8); 256] {
    let mut codes = [(0, 0); 256];
    let (mut code, mut at) = (0, 0);
    for (length, count) in (1..).zip(lengths) {
        for value in &values[at..at + usize::from(*count)] {
            codes[usize::from(*value)] = (code, length);
            code += 1;
        }
        at += usize::from(*count);
        code <<= 1;
    }
    codes
}

/// Bits, the highest first.
struct Bits<'f> {
    file: &'f mut Vec<u8>,
    held: u32,
    count: u32,
}

impl Bits<'_> {
    fn push(&mut self, bits: u16, length: u8) {
        self.held = self.held << length | u32::from(bits);
        self.count += u32::from(length);
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.held >> self.count) as u8;
            self.file.push(byte);
            // Otherwise it would be a marker.
            if byte == 0xff {
                self.file.push(0);
            }
        }
        self.held &= (1 << self.count) - 1;
    }

    /// A number, as a code for its length, `zeros` before it included, and its bits.
    fn number(&mut self, codes: &[(u16, u8); 256], zeros: u8, number: i32) {
        let length = (32 - number.unsigned_abs().leading_zeros()) as u8;
        let (code, bits) = codes[usize::from(zeros << 4 | length)];
        self.push(code, bits);
        let number = if number < 0 { number - 1 } else { number };
        self.push(number as u16 & ((1_u32 << length) - 1) as u16, length);
    }
}

fn scan(file: &mut Vec<u8>, width: usize, height: usize, pixels: &[u8], quanta: &[u8; 64]) {
    let dc = codes(&DC_LENGTHS, &DC_VALUES);
    let ac = codes(&AC_LENGTHS, &AC_VALUES);
    let mut cosines = [[0.0_f32; 8]; 8];
    for (frequency, row) in cosines.iter_mut().enumerate() {
        let scale = if frequency == 0 { 0.125_f32.sqrt() } else { 0.5 };
        for (at, cosine) in row.iter_mut().enumerate() {
            let angle = (2 * at + 1) as f32 * frequency as f32 * std::f32::consts::PI / 16.0;
            *cosine = scale * angle.cos();
        }
    }
    let mut before = [0; 3];
    let mut bits = Bits { file, held: 0, count: 0 };
    for top in (0..height).step_by(8) {
        for left in (0..width).step_by(8) {
            for (component, before) in before.iter_mut().enumerate() {
                let mut block = [[0.0; 8]; 8];
                for (row, line) in block.iter_mut().enumerate() {
                    for (column, value) in line.iter_mut().enumerate() {
                        // Beyond the edge, its last pixels again.
                        let y = (top + row).min(height - 1);
                        let x = (left + column).min(width - 1);
                        let at = 3 * (y * width + x);
                        *value = converted(component, &pixels[at..at + 3]);
                    }
                }
                let coefficients = transformed(&block, &cosines);
                let quantized = |at: usize| {
                    let place = ZIGZAG[at];
                    (coefficients[place / 8][place % 8] / f32::from(quanta[at])).round() as i32
                };
                let first = quantized(0);
                bits.number(&dc, 0, first - *before);
                *before = first;
                let mut zeros = 0;
                for at in 1..64 {
                    match quantized(at) {
                        0 => zeros += 1,
                        number => {
                            while zeros > 15 {
                                let (code, length) = ac[0xf0];
                                bits.push(code, length);
                                zeros -= 16;
                            }
                            bits.number(&ac, zeros, number.clamp(-1023, 1023));
                            zeros = 0;
                        }
                    }
                }
                if zeros > 0 {
                    let (code, length) = ac[0];
                    bits.push(code, length);
                }
            }
        }
    }
    bits.push(0x7f, 7);
}

/// Brightness, or one of the two differences of colour, around 0.
fn converted(component: usize, pixel: &[u8]) -> f32 {
    let [red, green, blue] = [0, 1, 2].map(|at| f32::from(pixel[at]));
    match component {
        0 => 0.299 * red + 0.587 * green + 0.114 * blue - 128.0,
        1 => -0.168_736 * red - 0.331_264 * green + 0.5 * blue,
        _ => 0.5 * red - 0.418_688 * green - 0.081_312 * blue,
    }
}

/// The cosine transform of a block: of its rows, and then of its columns.
fn transformed(block: &[[f32; 8]; 8], cosines: &[[f32; 8]; 8]) -> [[f32; 8]; 8] {
    let mut rows = [[0.0; 8]; 8];
    for (row, line) in rows.iter_mut().zip(block) {
        for (value, cosine) in row.iter_mut().zip(cosines) {
            *value = line.iter().zip(cosine).map(|(value, cosine)| value * cosine).sum();
        }
    }
    let mut all = [[0.0; 8]; 8];
    for (line, cosine) in all.iter_mut().zip(cosines) {
        for (column, value) in line.iter_mut().enumerate() {
            *value = rows.iter().zip(cosine).map(|(row, cosine)| row[column] * cosine).sum();
        }
    }
    all
}
