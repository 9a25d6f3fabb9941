//! Reads the rows of a Parquet file as JSON objects, in the file's order. It holds one page of each
//! column, so a file may have any size.
//!
//! Pages may be compressed by Snappy, gzip or Zstandard, or not at all. Columns may be nested:
//! lists become arrays, groups and maps objects. Bytes that are not text become `data:` URLs. Not
//! supported are pages compressed by LZO, Brotli or LZ4, encrypted files, and columns in files of
//! their own.
#![deny(unsafe_code)]

mod column;
mod schema;
#[cfg(test)]
mod tests;
mod thrift;
mod values;

use std::rc::Rc;

use runner_plugin::File;
use serde_json::{Map, Value};

use column::Column;
use schema::{Node, NodeKind, Schema, Times};

const LONGEST: u64 = 256 << 20;

/// A row and its number, from 1.
pub type NumberedRow = (u64, Map<String, Value>);

pub struct Parquet {
    file: Rc<dyn File>,
    schema: Schema,
    /// The next group, and the columns and the number of remaining rows of the current one.
    group: usize,
    columns: Vec<Column>,
    left: u64,
    number: u64,
}

impl Parquet {
    pub fn open(file: Rc<dyn File>) -> Result<Self, String> {
        let not_whole = || "it is not a whole Parquet file: expected `PAR1` at its end".to_owned();
        let end = file.size().checked_sub(8).ok_or_else(not_whole)?;
        let tail = file.read_all(end, 8)?;
        let Some((length, mark)) = tail.split_first_chunk::<4>() else { return Err(not_whole()) };
        match mark {
            b"PAR1" => {}
            b"PARE" => return Err("it is encrypted, which is not supported".to_owned()),
            _ => return Err(not_whole()),
        }
        let length = u64::from(u32::from_le_bytes(*length));
        if length > end.min(LONGEST) {
            return Err("its metadata is damaged, or too long".to_owned());
        }
        let metadata = file.read_all(end - length, length)?;
        let metadata = thrift::read(&metadata);
        let (metadata, _) = metadata.ok_or_else(|| "its metadata is damaged".to_owned())?;
        Ok(Self {
            schema: Schema::read(&metadata)?,
            file,
            group: 0,
            columns: Vec::new(),
            left: 0,
            number: 0,
        })
    }

    /// The next row; `None` at the end.
    pub fn row(&mut self) -> Result<Option<NumberedRow>, String> {
        while self.left == 0 {
            let Some(group) = self.schema.groups.get(self.group) else { return Ok(None) };
            self.group += 1;
            self.left = group.rows;
            let columns = self.schema.leaves.iter().zip(&group.chunks);
            self.columns = columns
                .map(|(leaf, chunk)| Column::new(Rc::clone(&self.file), *leaf, *chunk))
                .collect();
        }
        self.left -= 1;
        self.number += 1;
        match content(&self.schema.root, &mut self.columns) {
            Ok(Value::Object(row)) => Ok(Some((self.number, row))),
            Ok(_) => Ok(Some((self.number, Map::new()))),
            Err(message) => Err(format!("row {}: {message}", self.number)),
        }
    }
}

/// A place among the columns of a node; its levels show if the node is present.
fn first(node: &Node) -> Option<usize> {
    match &node.kind {
        NodeKind::Leaf(at) => Some(*at),
        NodeKind::Group(nodes) => nodes.iter().find_map(first),
        NodeKind::List(node) | NodeKind::Map(node) => first(node),
    }
}

/// The levels of a node's next value.
fn peek(node: &Node, columns: &mut [Column]) -> Result<(u16, u16), String> {
    let column = first(node).and_then(|at| columns.get_mut(at));
    let levels = column.map_or(Ok(None), Column::peek)?;
    Ok(levels.unwrap_or((0, 0)))
}

/// Skips a value that is missing in all columns of a node.
fn skip(node: &Node, columns: &mut [Column]) -> Result<(), String> {
    match &node.kind {
        NodeKind::Leaf(at) => columns[*at].take().map(drop),
        NodeKind::Group(nodes) => nodes.iter().try_for_each(|node| skip(node, columns)),
        NodeKind::List(node) | NodeKind::Map(node) => skip(node, columns),
    }
}

/// The next value of a node, as often as it occurs.
fn field(node: &Node, columns: &mut [Column]) -> Result<Value, String> {
    if node.times == Times::Once {
        return content(node, columns);
    }
    if peek(node, columns)?.0 < node.def {
        skip(node, columns)?;
        return Ok(match node.times {
            Times::Often => Value::Array(Vec::new()),
            _ => Value::Null,
        });
    }
    if node.times == Times::AtMostOnce {
        return content(node, columns);
    }
    let mut items = vec![content(node, columns)?];
    while peek(node, columns)?.1 == node.rep {
        items.push(content(node, columns)?);
    }
    Ok(Value::Array(items))
}

/// One value of a present node.
fn content(node: &Node, columns: &mut [Column]) -> Result<Value, String> {
    match &node.kind {
        NodeKind::Leaf(at) => Ok(columns[*at].take()?.unwrap_or(Value::Null)),
        NodeKind::Group(nodes) => {
            let mut fields = Map::new();
            for node in nodes {
                fields.insert(node.name.clone(), field(node, columns)?);
            }
            Ok(Value::Object(fields))
        }
        NodeKind::List(repeated) => {
            let items = field(repeated, columns)?;
            // A repeated field is a group around the element, except of an old writer.
            let wrapped = match &repeated.kind {
                NodeKind::Group(nodes) if nodes.len() == 1 && repeated.name != "array" => {
                    nodes.first()
                }
                _ => None,
            };
            let (Some(element), Value::Array(items)) = (wrapped, &items) else { return Ok(items) };
            let element = |item: &Value| item.get(&element.name).cloned().unwrap_or(Value::Null);
            Ok(items.iter().map(element).collect())
        }
        NodeKind::Map(repeated) => {
            let mut fields = Map::new();
            if let Value::Array(entries) = field(repeated, columns)? {
                for entry in entries {
                    let Value::Object(entry) = entry else { continue };
                    let mut parts = entry.into_iter().map(|(_, part)| part);
                    let key = match parts.next() {
                        Some(Value::String(key)) => key,
                        key => key.unwrap_or(Value::Null).to_string(),
                    };
                    fields.insert(key, parts.next().unwrap_or(Value::Null));
                }
            }
            Ok(Value::Object(fields))
        }
    }
}
