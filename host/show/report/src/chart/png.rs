//! SVG as PNG, with a font that ships, so that a run's picture is the same on every machine.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

/// Pixels of the picture to one of the chart: sharp on dense screens and on paper.
const SCALE: f32 = 2.0;

const REGULAR: &[u8] = include_bytes!("font/DejaVuSans.subset.ttf");
const BOLD: &[u8] = include_bytes!("font/DejaVuSans-Bold.subset.ttf");

/// The reason why no picture could be made of a drawing.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a picture of the chart: {0}")]
pub struct PngError(String);

static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(REGULAR.to_vec());
    fonts.load_font_data(BOLD.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    Arc::new(fonts)
});

/// The picture of a drawing. Fails if the drawing is not SVG, or too large for memory.
pub fn png(svg: &str) -> Result<Vec<u8>, PngError> {
    let options = Options {
        font_family: "DejaVu Sans".to_owned(),
        fontdb: Arc::clone(&FONTS),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).map_err(|cause| PngError(cause.to_string()))?;
    let size = tree.size().to_int_size().scale_by(SCALE);
    let pixmap = size.and_then(|size| Pixmap::new(size.width(), size.height()));
    let mut pixmap = pixmap.ok_or_else(|| PngError("it has no extent, or too much".to_owned()))?;
    let scale = Transform::from_scale(SCALE, SCALE);
    resvg::render(&tree, scale, &mut pixmap.as_mut());
    (pixmap.encode_png()).map_err(|cause| PngError(cause.to_string()))
}
