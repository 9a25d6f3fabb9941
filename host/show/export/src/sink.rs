//! Writers of batches, one for each form.
//!
//! A row group of Parquet is held until it is complete: at 131,072 rows, or at about 32 MiB as it
//! is encoded. The other forms hold nothing.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use super::{ExportError, Form};
use report::csv::line;

/// Rows of a row group, at most.
const ROWS: usize = 131_072;
/// Bytes of a row group, as it is encoded, after which it is complete.
const BYTES: usize = 32 << 20;

type Out<'w> = Box<dyn Write + Send + 'w>;

pub(crate) enum Sink<'w> {
    Parquet(Box<ArrowWriter<Out<'w>>>),
    ArrowStream(StreamWriter<Out<'w>>),
    ArrowFile(FileWriter<Out<'w>>),
    Csv(Out<'w>),
}

impl<'w> Sink<'w> {
    pub(crate) fn open(
        out: impl Write + Send + 'w,
        form: Form,
        schema: &SchemaRef,
    ) -> Result<Self, ExportError> {
        let mut out: Out<'w> = Box::new(out);
        Ok(match form {
            Form::Parquet => {
                let properties = properties(schema)?;
                let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties))?;
                Sink::Parquet(Box::new(writer))
            }
            Form::ArrowStream => Sink::ArrowStream(StreamWriter::try_new(out, schema)?),
            Form::ArrowFile => Sink::ArrowFile(FileWriter::try_new(out, schema)?),
            Form::Csv => {
                line(&mut out, schema.fields().iter().map(|field| Some(field.name())))?;
                Sink::Csv(out)
            }
        })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ExportError> {
        match self {
            Sink::Parquet(writer) => writer.write(batch)?,
            Sink::ArrowStream(writer) => writer.write(batch)?,
            Sink::ArrowFile(writer) => writer.write(batch)?,
            Sink::Csv(out) => (0..batch.num_rows())
                .try_for_each(|row| line(out, batch.columns().iter().map(|own| cell(own, row))))?,
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), ExportError> {
        match self {
            Sink::Parquet(writer) => drop(writer.close()?),
            Sink::ArrowStream(mut writer) => writer.finish()?,
            Sink::ArrowFile(mut writer) => writer.finish()?,
            Sink::Csv(mut out) => out.flush()?,
        }
        Ok(())
    }
}

/// Settings of Parquet. Readers that know no Arrow find the runs in the file's own metadata.
fn properties(schema: &Schema) -> Result<WriterProperties, ExportError> {
    let mut about: Vec<KeyValue> = schema
        .metadata()
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
        .collect();
    about.sort_by(|one, other| one.key.cmp(&other.key));
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("runner version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_max_row_group_row_count(Some(ROWS))
        .set_max_row_group_bytes(Some(BYTES))
        .set_key_value_metadata(Some(about));
    // Instants grow from row to row: differences are small, and a dictionary finds nothing.
    for field in schema.fields() {
        let path = match field.data_type() {
            DataType::Int64 if field.name().ends_with("_ns") => vec![field.name().clone()],
            DataType::List(item) if field.name().ends_with("_ns") => {
                let parts = [field.name().as_str(), "list", item.name()];
                parts.map(str::to_owned).into()
            }
            _ => continue,
        };
        let path = ColumnPath::new(path);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    Ok(properties.build())
}

/// A value as text; nothing where it is absent.
fn cell(column: &dyn Array, row: usize) -> Option<String> {
    if column.is_null(row) {
        return None;
    }
    Some(match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
        DataType::Boolean => column.as_boolean().value(row).to_string(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            let items = items.as_primitive::<Int64Type>().iter().flatten();
            let words: Vec<String> = items.map(|item| item.to_string()).collect();
            words.join(" ")
        }
        other => unreachable!("no column holds {other}"),
    })
}
