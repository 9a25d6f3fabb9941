//! Code that datasets with files share: a file's content as a stream, decompressed, and the records
//! in it. The content of a record is for the plugin; rows of Parquet are for `parquet-file`.
#![forbid(unsafe_code)]

mod packed;
mod zstd;

pub use packed::{Packing, stream};
pub use runner_plugin::records::{Cut, Place, Record, Records, cells};
