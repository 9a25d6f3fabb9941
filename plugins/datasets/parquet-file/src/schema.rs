//! A file's schema and the places of its columns, from the metadata at its end.
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>

use crate::thrift::Value;

const DEEPEST: u32 = 32;

#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub times: Times,
    /// The definition level from which on it is present.
    pub def: u16,
    pub rep: u16,
    pub kind: NodeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    Once,
    AtMostOnce,
    Often,
}

#[derive(Clone, Debug)]
pub enum NodeKind {
    /// A column, by its place among the columns.
    Leaf(usize),
    Group(Vec<Node>),
    /// A list: a group with one group or column that occurs often.
    List(Box<Node>),
    /// A map, likewise, whose entries have two columns.
    Map(Box<Node>),
}

#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    pub stored: Storage,
    pub means: Meaning,
    pub def: u16,
    pub rep: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    Bool,
    Int32,
    Int64,
    /// A timestamp in an obsolete format.
    Int96,
    Float,
    Double,
    Bytes,
    Fixed(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The stored values themselves: numbers, or bytes.
    Plain,
    Text,
    Unsigned,
    /// Numbers of units of ten to the power of minus this.
    Decimal(i32),
}

/// Columns of a number of rows.
#[derive(Clone, Debug)]
pub struct Group {
    pub rows: u64,
    pub chunks: Vec<Chunk>,
}

/// The part of a column in a group.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    pub start: u64,
    pub end: u64,
    /// The way pages are compressed, by the format's number.
    pub codec: i64,
    /// The number of values that it has, missing ones included.
    pub values: u64,
}

/// The schema: the structure of a row, its columns, and the groups of rows.
pub struct Schema {
    pub root: Node,
    pub leaves: Vec<Leaf>,
    pub groups: Vec<Group>,
}

impl Schema {
    pub fn read(metadata: &Value<'_>) -> Result<Self, String> {
        let damaged = || "its metadata is damaged".to_owned();
        let mut elements = metadata.list(2).iter();
        let mut leaves = Vec::new();
        let root = elements.next().ok_or_else(damaged)?;
        let root = Node {
            name: String::new(),
            times: Times::Once,
            def: 0,
            rep: 0,
            kind: NodeKind::Group(
                children(root, &mut elements, &mut leaves, 0, 0, DEEPEST).ok_or_else(damaged)?,
            ),
        };
        let mut groups = Vec::new();
        for group in metadata.list(4) {
            let mut chunks = Vec::new();
            for column in group.list(1) {
                if column.field(8).is_some() || column.field(9).is_some() {
                    return Err("it is encrypted, which is not supported".to_owned());
                }
                chunks.push(column.field(3).and_then(chunk).ok_or_else(damaged)?);
            }
            if chunks.len() != leaves.len() {
                return Err(damaged());
            }
            groups.push(Group { rows: natural(group, 3).ok_or_else(damaged)?, chunks });
        }
        Ok(Self { root, leaves, groups })
    }
}

fn natural(value: &Value<'_>, id: i16) -> Option<u64> {
    u64::try_from(value.int(id)?).ok()
}

fn chunk(column: &Value<'_>) -> Option<Chunk> {
    let data = natural(column, 9)?;
    let start = natural(column, 11)
        .filter(|dictionary| *dictionary > 0)
        .map_or(data, |dictionary| dictionary.min(data));
    Some(Chunk {
        start,
        end: start.checked_add(natural(column, 7)?)?,
        codec: column.int(4)?,
        values: natural(column, 5)?,
    })
}

type Elements<'v, 'a> = std::slice::Iter<'v, Value<'a>>;

fn children(
    parent: &Value<'_>,
    elements: &mut Elements<'_, '_>,
    leaves: &mut Vec<Leaf>,
    def: u16,
    rep: u16,
    depth: u32,
) -> Option<Vec<Node>> {
    let depth = depth.checked_sub(1)?;
    let mut nodes = Vec::new();
    for _ in 0..parent.int(5).unwrap_or(0) {
        let element = elements.next()?;
        let times = match element.int(3).unwrap_or(0) {
            0 => Times::Once,
            1 => Times::AtMostOnce,
            _ => Times::Often,
        };
        let def = def + u16::from(times != Times::Once);
        let rep = rep + u16::from(times == Times::Often);
        let kind = if element.int(5).unwrap_or(0) > 0 {
            let own = children(element, elements, leaves, def, rep, depth)?;
            let logical = |id| element.field(10).is_some_and(|kind| kind.field(id).is_some());
            let (is_list, is_map) = (
                logical(3) || element.int(6) == Some(3),
                logical(2) || matches!(element.int(6), Some(1 | 2)),
            );
            match <[Node; 1]>::try_from(own) {
                Ok([only]) if only.times == Times::Often && is_list => {
                    NodeKind::List(Box::new(only))
                }
                Ok([only]) if only.times == Times::Often && is_map => NodeKind::Map(Box::new(only)),
                Ok([only]) => NodeKind::Group(vec![only]),
                Err(own) => NodeKind::Group(own),
            }
        } else {
            leaves.push(leaf(element, def, rep)?);
            NodeKind::Leaf(leaves.len() - 1)
        };
        nodes.push(Node { name: element.text(4)?.to_owned(), times, def, rep, kind });
    }
    Some(nodes)
}

fn leaf(element: &Value<'_>, def: u16, rep: u16) -> Option<Leaf> {
    let stored = match element.int(1)? {
        0 => Storage::Bool,
        1 => Storage::Int32,
        2 => Storage::Int64,
        3 => Storage::Int96,
        4 => Storage::Float,
        5 => Storage::Double,
        6 => Storage::Bytes,
        7 => Storage::Fixed(usize::try_from(element.int(2)?).ok()?),
        _ => return None,
    };
    let logical = |id| element.field(10).and_then(|kind| kind.field(id));
    let unsigned = logical(10).and_then(|kind| kind.field(2)) == Some(&Value::Bool(false));
    let means = match element.int(6) {
        _ if logical(1).or(logical(4)).or(logical(12)).is_some() => Meaning::Text,
        Some(0 | 4 | 19) => Meaning::Text,
        _ if unsigned => Meaning::Unsigned,
        Some(11..=14) => Meaning::Unsigned,
        Some(5) => Meaning::Decimal(i32::try_from(element.int(7).unwrap_or(0)).ok()?),
        _ => match logical(5) {
            Some(decimal) => Meaning::Decimal(i32::try_from(decimal.int(1).unwrap_or(0)).ok()?),
            None => Meaning::Plain,
        },
    };
    Some(Leaf { stored, means, def, rep })
}
