//! What datasets that read files share: a file's content as a stream, decompressed, and the records
//! in it. What is in a record is for the plugin; rows of Parquet are for `parquet-file`.
#![forbid(unsafe_code)]

mod cut;
mod packed;
mod zstd;

pub use cut::{Cut, LONGEST, PIECE, Record, Records, cells};
pub use packed::{Bytes, Packed, stream};
