//! The colours of pages and charts, light and dark, and how series differ without colour.
//!
//! The series' hues are Okabe and Ito's, darkened or lightened until each stands out from its
//! ground. People with any common colour vision can distinguish them.

use std::fmt::Write;

use super::Tone;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    Light,
    Dark,
}

/// A colour by its name: light, dark.
type Colour = (&'static str, &'static str, &'static str);

pub(crate) const COLOURS: [Colour; 33] = [
    ("ground", "#f6f7f9", "#0e1116"),
    ("card", "#ffffff", "#161b22"),
    ("raised", "#eef1f4", "#222933"),
    ("ink", "#16191d", "#e9edf2"),
    ("soft", "#525b66", "#a5b0bc"),
    ("line", "#d3d9e0", "#323b46"),
    ("grid", "#e6e9ed", "#252c35"),
    ("accent", "#0b5cad", "#74b9ff"),
    ("valid", "#14652f", "#74d69a"),
    ("valid-ground", "#e3f4e8", "#12291b"),
    ("suspect", "#764700", "#f2c05c"),
    ("suspect-ground", "#fdf1d3", "#2e2410"),
    ("invalid", "#a3191f", "#ff9c93"),
    ("invalid-ground", "#fde8e7", "#371719"),
    ("note", "#38506b", "#a9c3de"),
    ("note-ground", "#eaf0f7", "#1b2532"),
    ("s0", "#0b67b2", "#58b0f2"),
    ("s1", "#c14a00", "#f38b4a"),
    ("s2", "#007a5a", "#3fcf9f"),
    ("s3", "#a03f7e", "#e690c1"),
    ("s4", "#806200", "#e3c04a"),
    ("s5", "#565d66", "#b4bcc6"),
    ("p0", "#8a929c", "#7d8794"),
    ("p1", "#a03f7e", "#e690c1"),
    ("p2", "#806200", "#e3c04a"),
    ("p3", "#d07a2d", "#f3a867"),
    ("p4", "#0b67b2", "#58b0f2"),
    ("p5", "#0f7f86", "#4fc4cb"),
    ("p6", "#565d66", "#b4bcc6"),
    ("p7", "#6f4bb2", "#b79bec"),
    ("p8", "#4d7a1f", "#9ccc5a"),
    ("failed", "#b3161d", "#ff8a80"),
    ("focus", "#0b5cad", "#ffd866"),
];

/// The number of series with a colour of their own; further ones begin anew with other dashes.
pub(crate) const SERIES: usize = 6;

/// The number of phases of a request with a colour of their own.
pub(crate) const PHASES: usize = 9;

/// Dashes of lines, one after the other: the first is drawn through.
const DASHES: [&str; SERIES] = ["", "7 3", "2 3", "9 3 2 3", "4 2", "1 2 5 2"];

pub fn colour(name: &str, theme: Theme) -> &'static str {
    let found = COLOURS.iter().find(|(known, ..)| *known == name);
    let (_, light, dark) = found.unwrap_or(&COLOURS[3]);
    match theme {
        Theme::Light => light,
        Theme::Dark => dark,
    }
}

/// All colours as custom properties of a style sheet.
pub fn properties(theme: Theme) -> String {
    let mut text = String::new();
    for (name, ..) in COLOURS {
        let _ = write!(text, "--{name}:{};", colour(name, theme));
    }
    text
}

impl Tone {
    fn series(self) -> Option<usize> {
        match self {
            Tone::Series(number) | Tone::Spots(number) | Tone::Joined(number) => Some(number),
            Tone::Phase(_) | Tone::Failed => None,
        }
    }

    /// The class of elements with this tone, and the name of its colour.
    pub fn class(self) -> String {
        match (self.series(), self) {
            (Some(number), _) => format!("s{}", number % SERIES),
            (None, Tone::Phase(number)) => format!("p{}", number % PHASES),
            _ => "failed".to_owned(),
        }
    }

    /// The attribute of its lines' dashes, after a space; empty for solid lines.
    pub(crate) fn dashes(self) -> String {
        match self.series().map(|number| DASHES[(number + number / SERIES) % SERIES]) {
            None | Some("") => String::new(),
            Some(dashes) => format!(" stroke-dasharray=\"{dashes}\""),
        }
    }

    /// The path of its marker around a point, which `M` has moved to.
    pub fn marker(self) -> &'static str {
        let markers = ["h0", "m-2.5 0h5m-2.5-2.5v5", "m-2-2l4 4m0-4l-4 4", "m-2 1.5h4l-2-4z"];
        markers[self.series().unwrap_or(0) % 4]
    }

    /// The path of a large marker around a point, which `M` has moved to: closed, 10 pixels wide.
    pub(crate) fn spot(self) -> &'static str {
        let spots = [
            "m-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
            "m-4.5-4.5h9v9h-9z",
            "m0-6l6 6l-6 6l-6-6z",
            "m-5.5 4.5h11l-5.5-10z",
        ];
        self.series().map_or("m-5-5l10 10m0-10l-10 10", |number| spots[number % 4])
    }
}

/// The style sheet rules that give charts their colours, each provided by `colour`.
pub fn rules(colour: impl Fn(&str) -> String) -> String {
    let (soft, ink, line, grid) = (colour("soft"), colour("ink"), colour("line"), colour("grid"));
    let (note, raised, card) = (colour("note"), colour("raised"), colour("card"));
    let mut text = format!(
        ".chart text{{fill:{soft};font-size:12px}}\
         .chart .title{{fill:{ink};font-size:15px;font-weight:bold}}\
         .chart .axis{{fill:{ink}}}\
         .chart .grid{{stroke:{grid};fill:none}}\
         .chart .base{{stroke:{line};fill:none}}\
         .chart .band{{fill:{raised};fill-opacity:.6}}\
         .chart .rule{{stroke:{note};stroke-dasharray:2 3;fill:none}}\
         .chart .ruled{{fill:{note};stroke:{card};stroke-width:3;paint-order:stroke;font-size:11px}}\
         .chart .named{{fill:{ink};stroke:{card};stroke-width:3;paint-order:stroke}}\
         .chart .ground{{fill:{card}}}"
    );
    let tones = (0..SERIES).map(Tone::Series);
    let tones = tones.chain((0..PHASES).map(Tone::Phase)).chain([Tone::Failed]);
    for tone in tones {
        let (class, own) = (tone.class(), colour(&tone.class()));
        let _ = write!(
            text,
            ".chart .{class} .stroke{{stroke:{own};fill:none;stroke-width:1.8;stroke-linejoin:round}}\
             .chart .{class} .fill{{fill:{own};stroke:none}}\
             .chart .{class} .area{{fill:{own};fill-opacity:.16;stroke:none}}\
             .chart .{class} .spot{{fill:{own};stroke:{card};stroke-width:1.2}}\
             .chart .{class} .cross{{stroke:{own};fill:none;stroke-width:2.6}}\
             .chart .{class} .dots{{stroke:{own};fill:none;stroke-width:1.2;stroke-opacity:.75}}\
             .chart .{class} .round{{stroke:{own};fill:none;stroke-width:4;stroke-linecap:round;stroke-opacity:.4}}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contrast of two colours as the Web Content Accessibility Guidelines reckon it.
    fn contrast(one: &str, other: &str) -> f64 {
        let luminance = |colour: &str| -> f64 {
            let channel = |at: usize| {
                let value = u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
                let value = f64::from(value) / 255.0;
                if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
        };
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn colours_stand_out_from_their_ground() {
        let mut text = vec![
            ("ink", "raised"),
            ("soft", "raised"),
            ("accent", "raised"),
            ("soft", "valid-ground"),
            ("soft", "suspect-ground"),
            ("soft", "invalid-ground"),
            ("soft", "note-ground"),
        ];
        for ground in ["ground", "card"] {
            let inks = ["ink", "soft", "accent", "valid", "suspect", "invalid", "note"];
            text.extend(inks.map(|ink| (ink, ground)));
        }
        for severity in ["valid", "suspect", "invalid", "note"] {
            let ground = COLOURS.iter().find(|(name, ..)| *name == format!("{severity}-ground"));
            let ground = ground.unwrap().0;
            text.extend([(severity, ground), ("ink", ground)]);
        }
        let tones = (0..SERIES).map(|n| format!("s{n}"));
        let tones = tones.chain((0..PHASES).map(|n| format!("p{n}")));
        let marks: Vec<String> = tones.chain(["failed".into(), "focus".into()]).collect();
        for theme in [Theme::Light, Theme::Dark] {
            for (ink, ground) in &text {
                let seen = contrast(colour(ink, theme), colour(ground, theme));
                assert!(seen >= 4.5, "{ink} on {ground}, {theme:?}: {seen:.2}");
            }
            for mark in &marks {
                let seen = contrast(colour(mark, theme), colour("card", theme));
                assert!(seen >= 3.0, "{mark} on card, {theme:?}: {seen:.2}");
            }
        }
    }

    #[test]
    fn series_differ_in_more_than_their_colour() {
        let looks: std::collections::BTreeSet<_> =
            (0..12).map(|n| (Tone::Series(n).class(), Tone::Series(n).dashes())).collect();
        assert_eq!(looks.len(), 12);
        for pair in 0..5 {
            let [one, other] = [pair, pair + 1].map(Tone::Series);
            assert_ne!(one.dashes(), other.dashes());
            assert_ne!(one.marker(), other.marker());
        }
    }
}
