//! Thrift's compact protocol, in which Parquet writes its metadata: reads a struct into fields by
//! their numbers.
//! <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>

const DEEPEST: u32 = 32;

#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Bool(bool),
    Int(i64),
    Double(f64),
    Bytes(&'a [u8]),
    List(Vec<Value<'a>>),
    Struct(Vec<(i16, Value<'a>)>),
}

impl<'a> Value<'a> {
    pub fn field(&self, id: i16) -> Option<&Value<'a>> {
        match self {
            Value::Struct(fields) => {
                fields.iter().find(|(own, _)| *own == id).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    pub fn int(&self, id: i16) -> Option<i64> {
        match self.field(id)? {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// A field of a struct that is a list; empty if there is none.
    pub fn list(&self, id: i16) -> &[Value<'a>] {
        match self.field(id) {
            Some(Value::List(items)) => items,
            _ => &[],
        }
    }

    pub fn text(&self, id: i16) -> Option<&'a str> {
        match self.field(id)? {
            Value::Bytes(bytes) => str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

/// Reads the struct at the beginning of some bytes, with its length; `None` if it is not whole.
pub fn read(bytes: &[u8]) -> Option<(Value<'_>, usize)> {
    let mut input = Input { bytes, at: 0 };
    let value = input.fields(DEEPEST)?;
    Some((value, input.at))
}

pub struct Input<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Input<'a> {
    pub fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    /// A number of seven bits a byte, the lowest first.
    pub fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Such a number whose lowest bit is its sign.
    pub fn zigzag(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn fields(&mut self, depth: u32) -> Option<Value<'a>> {
        let depth = depth.checked_sub(1)?;
        let mut fields = Vec::new();
        let mut id = 0_i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(Value::Struct(fields));
            }
            id = match head >> 4 {
                0 => i16::try_from(self.zigzag()?).ok()?,
                step => id.checked_add(i16::from(step))?,
            };
            let value = match head & 15 {
                1 => Value::Bool(true),
                2 => Value::Bool(false),
                kind => self.value(kind, depth)?,
            };
            fields.push((id, value));
        }
    }

    fn value(&mut self, kind: u8, depth: u32) -> Option<Value<'a>> {
        Some(match kind {
            1 | 2 => Value::Bool(self.byte()? == 1),
            3 => Value::Int(i64::from(self.byte()? as i8)),
            4..=6 => Value::Int(self.zigzag()?),
            7 => Value::Double(f64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            8 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            9 | 10 => {
                let head = self.byte()?;
                let length = match head >> 4 {
                    15 => self.varint()?,
                    length => u64::from(length),
                };
                let depth = depth.checked_sub(1)?;
                // An item takes a byte or more, so missing bytes end the list.
                let mut items = Vec::new();
                for _ in 0..length {
                    items.push(self.value(head & 15, depth)?);
                }
                Value::List(items)
            }
            11 => {
                let length = self.varint()?;
                let depth = depth.checked_sub(1)?;
                let kinds = if length > 0 { self.byte()? } else { 0 };
                for _ in 0..length {
                    self.value(kinds >> 4, depth)?;
                    self.value(kinds & 15, depth)?;
                }
                Value::List(Vec::new())
            }
            12 => self.fields(depth)?,
            13 => Value::Bytes(self.take(16)?),
            _ => return None,
        })
    }
}
