//! Code that datasets with files share: a file's content as a stream, decompressed, and the records
//! in it. The content of a record is for the plugin; rows of Parquet are for `parquet-file`.
#![forbid(unsafe_code)]

mod cut;
mod packed;
mod zstd;

pub use cut::{Cut, LONGEST, PIECE, Record, Records, cells};
pub use packed::{Bytes, Packing, stream};
