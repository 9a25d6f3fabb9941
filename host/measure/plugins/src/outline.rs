//! Facts about a component that are known without compiling it: counts and sizes, and the names of
//! its imports and exports.
//!
//! The compiler accepts any input and takes as long as it needs. So a component that exceeds the
//! limits is detected here and never reaches it; `effort` estimates the compiler's memory. A
//! scenario can raise the limits (`sandbox`).

use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind,
    ComponentTypeRef, ElementItems, Encoding, Instance, Parser, Payload,
};

use super::limits::mebibytes;
use model::plugin::Limits;

/// Most instances that one instance of a component may consist of: a few bytes can be any number.
const INSTANCES: u64 = 1_000;
/// Most items in all modules and components together, functions aside: imports, exports, types,
/// globals, segments and aliases. Each costs memory when it is compiled.
const ITEMS: u64 = 500_000;
/// Most bytes of one instance beside its memories and tables.
const INSTANCE_BYTES: u64 = 16 << 20;
const ITEM_BYTES: u64 = 32;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Functions: of all modules together, and of the boundary.
    pub functions: u64,
    /// Nesting depth of modules and components; 1 for a component without any.
    pub nesting: u64,
    /// Instances that one instance consists of, at most.
    pub instances: u64,
    /// Bytes that one instance takes beside its memories and tables, at most.
    pub instance_bytes: u64,
    /// Items in all modules and components together, functions aside.
    pub items: u64,
    /// Initial size of all its memories, in bytes.
    pub memory_bytes: u64,
    /// Initial size of all its tables, in elements.
    pub table_elements: u64,
    pub imports: Vec<String>,
    pub exports: Vec<String>,
    /// True if it passes components or modules around as values.
    hands_on_code: bool,
}

#[derive(Clone, Copy, Default)]
struct Cost {
    instances: u64,
    bytes: u64,
}

/// A module or component that is being read.
#[derive(Default)]
struct Level {
    is_component: bool,
    /// The cost of an instance of it; of a component, without the component itself.
    cost: Cost,
    /// The costs of the modules and components that can be instantiated from here, by index.
    modules: Vec<Cost>,
    components: Vec<Cost>,
}

impl Outline {
    /// Reads a component's outline. Fails if it is malformed, with the parser's message.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut outline = Outline::default();
        let mut levels: Vec<Level> = Vec::new();
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload.map_err(|error| error.to_string())?;
            // The parser takes a nested part that the file cuts between two sections as complete.
            if let Payload::ModuleSection { unchecked_range, .. }
            | Payload::ComponentSection { unchecked_range, .. } = &payload
                && unchecked_range.end > bytes.len()
            {
                return Err(format!("unexpected end-of-file (at offset {:#x})", bytes.len()));
            }
            outline.add(&mut levels, payload).map_err(|error| error.to_string())?;
        }
        Ok(outline)
    }

    fn add(&mut self, levels: &mut Vec<Level>, payload: Payload<'_>) -> wasmparser::Result<()> {
        let depth = levels.len();
        match payload {
            Payload::Version { encoding, .. } => {
                let is_component = encoding == Encoding::Component;
                levels.push(Level {
                    is_component,
                    cost: Cost { instances: u64::from(is_component), bytes: ITEM_BYTES },
                    ..Level::default()
                });
                self.nesting = self.nesting.max(levels.len() as u64);
            }
            Payload::End(_) => self.leave(levels),
            Payload::FunctionSection(section) => {
                self.functions += u64::from(section.count());
                add_items(levels, section.count());
            }
            Payload::ComponentCanonicalSection(section) => {
                self.functions += u64::from(section.count());
                add_items(levels, section.count());
            }
            // A type lists fields, parameters and cases, counted by the bytes that they take.
            Payload::TypeSection(section) => self.items += (section.range().len() / 4) as u64,
            Payload::CoreTypeSection(section) => self.items += (section.range().len() / 4) as u64,
            Payload::ComponentTypeSection(section) => {
                self.items += (section.range().len() / 4) as u64;
            }
            Payload::ExportSection(section) => self.list(section.count()),
            Payload::DataSection(section) => self.list(section.count()),
            Payload::ImportSection(section) => self.hold(levels, section.count()),
            Payload::GlobalSection(section) => self.hold(levels, section.count()),
            Payload::TagSection(section) => self.hold(levels, section.count()),
            Payload::ElementSection(section) => {
                self.list(section.count());
                for element in section {
                    let items = match element?.items {
                        ElementItems::Functions(items) => items.count(),
                        ElementItems::Expressions(_, items) => items.count(),
                    };
                    self.hold(levels, items);
                }
            }
            Payload::TableSection(section) => {
                self.hold(levels, section.count());
                for table in section {
                    let elements = &mut self.table_elements;
                    *elements = elements.saturating_add(table?.ty.initial);
                }
            }
            Payload::MemorySection(section) => {
                self.hold(levels, section.count());
                for memory in section {
                    let memory = memory?;
                    let page = 1_u64 << memory.page_size_log2.unwrap_or(16).min(63);
                    let bytes = memory.initial.saturating_mul(page);
                    self.memory_bytes = self.memory_bytes.saturating_add(bytes);
                }
            }
            Payload::InstanceSection(section) => {
                self.list(section.count());
                for instance in section {
                    match instance? {
                        Instance::Instantiate { module_index, args } => {
                            self.items += args.len() as u64;
                            add_instance(levels, |level| &level.modules, module_index);
                        }
                        Instance::FromExports(exports) => self.items += exports.len() as u64,
                    }
                }
            }
            Payload::ComponentInstanceSection(section) => {
                self.list(section.count());
                for instance in section {
                    match instance? {
                        ComponentInstance::Instantiate { component_index, args } => {
                            self.items += args.len() as u64;
                            add_instance(levels, |level| &level.components, component_index);
                        }
                        ComponentInstance::FromExports(exports) => {
                            self.items += exports.len() as u64;
                        }
                    }
                }
            }
            Payload::ComponentImportSection(section) => {
                self.list(section.count());
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
            Payload::ComponentExportSection(section) => {
                self.list(section.count());
                for export in section {
                    let export = export?;
                    // An export is a new name, and where it is code, a new index of it.
                    match export.kind {
                        ComponentExternalKind::Module => {
                            add_index(levels, 0, export.index, |level| &mut level.modules);
                        }
                        ComponentExternalKind::Component => {
                            add_index(levels, 0, export.index, |level| &mut level.components);
                        }
                        _ => {}
                    }
                    if depth == 1 {
                        self.exports.push(export.name.name.to_owned());
                    }
                }
            }
            Payload::ComponentAliasSection(section) => {
                self.list(section.count());
                for alias in section {
                    match alias? {
                        ComponentAlias::InstanceExport {
                            kind: ComponentExternalKind::Component | ComponentExternalKind::Module,
                            ..
                        } => self.hands_on_code = true,
                        ComponentAlias::Outer { kind, count, index } => match kind {
                            ComponentOuterAliasKind::CoreModule => {
                                add_index(levels, count, index, |level| &mut level.modules);
                            }
                            ComponentOuterAliasKind::Component => {
                                add_index(levels, count, index, |level| &mut level.components);
                            }
                            _ => {}
                        },
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn list(&mut self, items: u32) {
        self.items += u64::from(items);
    }

    /// Counts items that an instance of the current module holds.
    fn hold(&mut self, levels: &mut [Level], items: u32) {
        self.list(items);
        add_items(levels, items);
    }

    fn leave(&mut self, levels: &mut Vec<Level>) {
        let Some(inner) = levels.pop() else { return };
        match levels.last_mut() {
            Some(outer) if inner.is_component => outer.components.push(inner.cost),
            Some(outer) => outer.modules.push(Cost { instances: 1, ..inner.cost }),
            None => {
                // The component itself is no instance of anything.
                self.instances = inner.cost.instances.saturating_sub(1);
                self.instance_bytes = inner.cost.bytes;
            }
        }
    }

    pub fn beyond(&self, limits: &Limits) -> Option<String> {
        let settable = [
            (self.functions, limits.functions, "functions", "functions"),
            (self.table_elements, limits.table_elements, "elements in its tables", "table"),
            (self.nesting, limits.nesting, "levels of nested modules and components", "nesting"),
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
        if self.instances > INSTANCES {
            return Some(format!(
                "each instance consists of up to {} instances, at most {INSTANCES} are allowed",
                self.instances
            ));
        }
        if self.items > ITEMS {
            return Some(format!(
                "it lists {} imports, exports, types, globals, segments and the like, at most {ITEMS} are allowed",
                self.items
            ));
        }
        (self.instance_bytes > INSTANCE_BYTES).then(|| {
            format!(
                "each instance takes up to {} for globals, functions and imports, at most {} are allowed",
                mebibytes(self.instance_bytes),
                mebibytes(INSTANCE_BYTES)
            )
        })
    }
}

/// Adds the bytes of items that an instance of the current module holds.
fn add_items(levels: &mut [Level], items: u32) {
    if let Some(level) = levels.last_mut() {
        let bytes = u64::from(items) * ITEM_BYTES;
        level.cost.bytes = level.cost.bytes.saturating_add(bytes);
    }
}

/// Adds an instance of the code of this index. The compiler refuses an index of nothing.
fn add_instance(levels: &mut [Level], of: impl Fn(&Level) -> &Vec<Cost>, index: u32) {
    let Some(level) = levels.last_mut() else { return };
    if let Some(cost) = of(level).get(index as usize).copied() {
        let total = &mut level.cost;
        total.instances = total.instances.saturating_add(cost.instances);
        total.bytes = total.bytes.saturating_add(cost.bytes);
    }
}

/// Gives code of an outer level, or of this one, a further index here.
fn add_index(
    levels: &mut [Level],
    outward: u32,
    index: u32,
    of: impl Fn(&mut Level) -> &mut Vec<Cost>,
) {
    let from = levels.len().checked_sub(1 + outward as usize);
    let cost = from.and_then(|from| of(&mut levels[from]).get(index as usize).copied());
    if let (Some(cost), Some(level)) = (cost, levels.last_mut()) {
        of(level).push(cost);
    }
}
