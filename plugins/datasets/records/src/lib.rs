//! Code that datasets with files share: a file's content as a stream, decompressed, and the records
//! in it. The content of a record is for the plugin; rows of Parquet are for `parquet-file`.
#![forbid(unsafe_code)]

mod zstd;

pub use runner_plugin::records::{Cut, Place, Record, Records, cells};
pub use zstd::{Packing, stream};
