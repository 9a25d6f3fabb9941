//! A value for some of a run's requests, by their index, in little more memory than the values
//! take. Written and read as a map from index to value.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

const PAGE: u64 = 256;

/// Values by index. Indexes lie close together, so they are kept by the page; one that lies far
/// off, as in a damaged file, costs a page and no more.
#[derive(Clone, Debug, PartialEq)]
pub struct Column<T> {
    pages: BTreeMap<u64, Page<T>>,
    len: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Page<T> {
    /// A bit for each value that is there.
    there: [u64; PAGE as usize / 64],
    values: Box<[T]>,
}

impl<T: Copy + Default> Column<T> {
    pub fn insert(&mut self, index: u64, value: T) {
        let page = self.pages.entry(index / PAGE).or_insert_with(|| Page {
            there: [0; PAGE as usize / 64],
            values: vec![T::default(); PAGE as usize].into_boxed_slice(),
        });
        let at = (index % PAGE) as usize;
        self.len += usize::from(!page.holds(at));
        page.there[at / 64] |= 1 << (at % 64);
        page.values[at] = value;
    }

    pub fn get(&self, index: u64) -> Option<T> {
        let page = self.pages.get(&(index / PAGE))?;
        let at = (index % PAGE) as usize;
        page.holds(at).then(|| page.values[at])
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, T)> + '_ {
        self.pages.iter().flat_map(|(number, page)| {
            let held = (0..PAGE as usize).filter(|at| page.holds(*at));
            held.map(move |at| (number * PAGE + at as u64, page.values[at]))
        })
    }
}

impl<T> Column<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Page<T> {
    fn holds(&self, at: usize) -> bool {
        self.there[at / 64] >> (at % 64) & 1 == 1
    }
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Column { pages: BTreeMap::new(), len: 0 }
    }
}

impl<T: Copy + Default> Extend<(u64, T)> for Column<T> {
    fn extend<I: IntoIterator<Item = (u64, T)>>(&mut self, values: I) {
        values.into_iter().for_each(|(index, value)| self.insert(index, value));
    }
}

impl<T: Copy + Default> FromIterator<(u64, T)> for Column<T> {
    fn from_iter<I: IntoIterator<Item = (u64, T)>>(values: I) -> Self {
        let mut column = Column::default();
        column.extend(values);
        column
    }
}

impl<T: Copy + Default, const N: usize> From<[(u64, T); N]> for Column<T> {
    fn from(values: [(u64, T); N]) -> Self {
        values.into_iter().collect()
    }
}

impl<T: Copy + Default + Serialize> Serialize for Column<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, T: Copy + Default + Deserialize<'de>> Deserialize<'de> for Column<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<T>(PhantomData<T>);

        impl<'de, T: Copy + Default + Deserialize<'de>> Visitor<'de> for Map<T> {
            type Value = Column<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a map from the indexes of requests")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut column = Column::default();
                while let Some((index, value)) = map.next_entry()? {
                    column.insert(index, value);
                }
                Ok(column)
            }
        }

        deserializer.deserialize_map(Map(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_index_and_listed_in_order() {
        let far = u64::MAX;
        let column: Column<u32> = [(300, 3), (0, 0), (far, 9), (255, 2), (0, 1)].into();
        assert_eq!(column.iter().collect::<Vec<_>>(), [(0, 1), (255, 2), (300, 3), (far, 9)]);
        assert_eq!((column.len(), column.pages.len()), (4, 3));
        assert_eq!((column.get(300), column.get(301), column.get(1 << 40)), (Some(3), None, None));
        let text = serde_json::to_string(&column).unwrap();
        assert_eq!(text, format!(r#"{{"0":1,"255":2,"300":3,"{far}":9}}"#));
        assert_eq!(serde_json::from_str::<Column<u32>>(&text).unwrap(), column);
        assert!(Column::<f64>::default().is_empty());
    }
}
