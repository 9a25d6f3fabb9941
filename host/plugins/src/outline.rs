//! What is known about a component without compiling it: counts and sizes, and the names of its imports and
//! exports.
//!
//! The compiler accepts any input and takes as long as it needs, so a component that exceeds the limits is detected
//! here and never reaches it. The compiler checks whether the rest is valid.

use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentTypeRef, Encoding, Instance,
    Parser, Payload,
};

use super::limits::mebibytes;
use model::plugin::Limits;

/// Most instances that one instance of a component may consist of. Components instantiate components, so a few
/// bytes can stand for any number of them.
const INSTANCES: u64 = 1_000;

/// A component from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Functions: those of all modules together, and those that cross the boundary.
    pub functions: u64,
    /// Nesting depth of modules and components; 1 for a component without any.
    pub nesting: u64,
    /// Instances that one instance consists of, at most.
    pub instances: u64,
    /// Initial size of all its memories, in bytes.
    pub memory_bytes: u64,
    /// Initial size of all its tables, in elements.
    pub table_elements: u64,
    /// Names of its imports, in order.
    pub imports: Vec<String>,
    /// Names of its exports, in order.
    pub exports: Vec<String>,
    /// Whether it passes components or modules around as values.
    hands_on_code: bool,
}

/// A module or component that is being read.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Instances that one instance of it consists of, not counting itself.
    instances: u64,
    /// Those of the largest component that can be named from here.
    largest: u64,
    is_component: bool,
}

impl Outline {
    /// Reads a component's outline.
    ///
    /// # Errors
    /// If it is malformed, with the parser's message.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut outline = Outline::default();
        let mut levels: Vec<Level> = Vec::new();
        for payload in Parser::new(0).parse_all(bytes) {
            outline
                .add(&mut levels, payload.map_err(said)?)
                .map_err(said)?;
        }
        Ok(outline)
    }

    fn add(&mut self, levels: &mut Vec<Level>, payload: Payload<'_>) -> wasmparser::Result<()> {
        let depth = levels.len();
        match payload {
            Payload::Version { encoding, .. } => {
                levels.push(Level {
                    instances: 0,
                    largest: levels.last().map_or(1, |outer| outer.largest),
                    is_component: encoding == Encoding::Component,
                });
                self.nesting = self.nesting.max(levels.len() as u64);
            }
            Payload::End(_) => self.leave(levels),
            Payload::FunctionSection(section) => self.functions += u64::from(section.count()),
            Payload::ComponentCanonicalSection(section) => {
                self.functions += u64::from(section.count());
            }
            Payload::TableSection(section) => {
                for table in section {
                    let elements = &mut self.table_elements;
                    *elements = elements.saturating_add(table?.ty.initial);
                }
            }
            Payload::MemorySection(section) => {
                for memory in section {
                    let memory = memory?;
                    let page = 1_u64 << memory.page_size_log2.unwrap_or(16).min(63);
                    let bytes = memory.initial.saturating_mul(page);
                    self.memory_bytes = self.memory_bytes.saturating_add(bytes);
                }
            }
            Payload::InstanceSection(section) => {
                for instance in section {
                    if matches!(instance?, Instance::Instantiate { .. }) {
                        count(levels, 1);
                    }
                }
            }
            Payload::ComponentInstanceSection(section) => {
                for instance in section {
                    if matches!(instance?, ComponentInstance::Instantiate { .. }) {
                        let largest = levels.last().map_or(1, |level| level.largest);
                        count(levels, largest);
                    }
                }
            }
            Payload::ComponentImportSection(section) => {
                for import in section {
                    let import = import?;
                    self.hands_on_code |= matches!(
                        import.ty,
                        ComponentTypeRef::Component(_) | ComponentTypeRef::Module(_)
                    );
                    if depth == 1 {
                        self.imports.push(import.name.name.to_owned());
                    }
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    self.exports.push(export?.name.name.to_owned());
                }
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section {
                    self.hands_on_code |= matches!(
                        alias?,
                        ComponentAlias::InstanceExport {
                            kind: ComponentExternalKind::Component | ComponentExternalKind::Module,
                            ..
                        }
                    );
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn leave(&mut self, levels: &mut Vec<Level>) {
        let Some(inner) = levels.pop() else {
            return;
        };
        match levels.last_mut() {
            Some(outer) if inner.is_component => {
                outer.largest = outer.largest.max(inner.instances.saturating_add(1));
            }
            Some(_) => {}
            None => self.instances = inner.instances,
        }
    }

    /// Describes what exceeds the limits; absent if nothing does.
    pub fn beyond(&self, limits: &Limits) -> Option<String> {
        let settable = [
            (self.functions, limits.functions, "functions", "functions"),
            (
                self.table_elements,
                limits.table_elements,
                "elements in its tables",
                "table",
            ),
            (
                self.nesting,
                limits.nesting,
                "levels of nested modules and components",
                "nesting",
            ),
        ];
        for (found, limit, what, key) in settable {
            if found > limit {
                return Some(format!(
                    "it has {found} {what}, at most {limit} are allowed (raise `{key}` under [sandbox] if you trust it)"
                ));
            }
        }
        if self.memory_bytes > limits.memory_bytes {
            return Some(format!(
                "it starts with {} of memory, at most {} are allowed (raise `memory` under [sandbox] if you trust it)",
                mebibytes(self.memory_bytes),
                mebibytes(limits.memory_bytes)
            ));
        }
        if self.hands_on_code {
            return Some(
                "it passes components or modules as values, which no plugin needs".to_owned(),
            );
        }
        (self.instances > INSTANCES).then(|| {
            format!(
                "each instance consists of up to {} instances, at most {INSTANCES} are allowed",
                self.instances
            )
        })
    }
}

fn count(levels: &mut [Level], instances: u64) {
    if let Some(level) = levels.last_mut() {
        level.instances = level.instances.saturating_add(instances);
    }
}

fn said(error: wasmparser::BinaryReaderError) -> String {
    error.to_string()
}
