//! The reference of the plugin interface, generated from its WIT: every item with its description,
//! by interface, with links from each name to its definition.

use std::fmt::Write;
use std::path::Path;

use wit_parser::{
    Docs, Function, Handle, Interface, InterfaceId, PackageId, Resolve, Type, TypeDef, TypeDefKind,
    TypeId, World, WorldItem, WorldKey,
};

const HEAD: &str = "\
Every type and function of the interface between the runner and a plugin. It is generated from the comments of its
definition in WIT ([`wit/`](../../wit)), which is also in every project that `runner plugin new` writes.
";

pub fn markdown(resolve: &Resolve, package: PackageId) -> String {
    let reference = Reference { resolve };
    let package = &resolve.packages[package];
    let name = &package.name;
    let version = name.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
    let mut out = format!("# `{}:{}`{version}\n\n{HEAD}", name.namespace, name.name);
    out.push_str("\n## Worlds\n\nA plugin is a component of one of these worlds.\n");
    for world in package.worlds.values() {
        reference.world(&resolve.worlds[*world], &mut out);
    }
    // A plugin's exports come before its imports.
    let mut interfaces: Vec<InterfaceId> = package.interfaces.values().copied().collect();
    let exported = |id: &InterfaceId| {
        let mut worlds = package.worlds.values();
        let is_it =
            |item: &WorldItem| matches!(item, WorldItem::Interface { id: own, .. } if own == id);
        worlds.any(|world| resolve.worlds[*world].exports.values().any(is_it))
    };
    interfaces.sort_by_key(|id| !exported(id));
    for interface in interfaces {
        reference.interface(&resolve.interfaces[interface], &mut out);
    }
    out
}

struct Reference<'a> {
    resolve: &'a Resolve,
}

impl Reference<'_> {
    fn world(&self, world: &World, out: &mut String) {
        put(out, format_args!("\n### `{}`\n\n{}\n\n", world.name, prose(&world.docs)));
        for (word, items) in [("Exports", &world.exports), ("Imports", &world.imports)] {
            let names = items.iter().map(|(key, item)| match (key, item) {
                (_, WorldItem::Interface { id, .. }) | (WorldKey::Interface(id), _) => {
                    self.interface_link(*id)
                }
                (WorldKey::Name(name), _) => format!("`{name}`"),
            });
            put(out, format_args!("{word}: {}\n\n", names.collect::<Vec<_>>().join(", ")));
        }
        out.pop();
    }

    fn interface(&self, interface: &Interface, out: &mut String) {
        let name = interface.name.as_deref().unwrap_or_default();
        put(out, format_args!("\n## {name}\n\n{}\n", prose(&interface.docs)));
        for (own, id) in &interface.types {
            let definition = &self.resolve.types[*id];
            if imported(definition) {
                continue;
            }
            put(out, format_args!("\n### {name}.{own}\n\n"));
            self.definition(definition, *id, interface, out);
        }
        let free: Vec<&Function> = interface
            .functions
            .values()
            .filter(|function| function.kind.resource().is_none())
            .collect();
        for function in free {
            put(out, format_args!("\n### {name}.{}\n\n", function.name));
            put(out, format_args!("{}\n\n{}\n", self.signature(function), prose(&function.docs)));
        }
    }

    fn definition(
        &self,
        definition: &TypeDef,
        id: TypeId,
        interface: &Interface,
        out: &mut String,
    ) {
        let kind = match definition.kind.as_str() {
            vowel @ "enum" => format!("An {vowel}"),
            other => format!("A {other}"),
        };
        let sentence = prose(&definition.docs);
        let mut table = |head: &str, rows: Vec<(&str, String, &Docs)>| {
            put(out, format_args!("{kind}. {sentence}\n\n| {head} | | |\n| --- | --- | --- |\n"));
            for (name, what, docs) in rows {
                put(out, format_args!("| `{name}` | {what} | {} |\n", prose(docs)));
            }
        };
        match &definition.kind {
            TypeDefKind::Record(record) => {
                let row = |field: &'_ wit_parser::Field| self.typed(&field.ty);
                let rows = record.fields.iter();
                table("field", rows.map(|f| (f.name.as_str(), row(f), &f.docs)).collect());
            }
            TypeDefKind::Variant(variant) => {
                let row = |case: &'_ wit_parser::Case| {
                    case.ty.as_ref().map_or(String::new(), |ty| self.typed(ty))
                };
                let rows = variant.cases.iter();
                table("case", rows.map(|c| (c.name.as_str(), row(c), &c.docs)).collect());
            }
            TypeDefKind::Enum(cases) => {
                let rows = cases.cases.iter();
                table("case", rows.map(|c| (c.name.as_str(), String::new(), &c.docs)).collect());
            }
            TypeDefKind::Resource => {
                let methods = interface.functions.values();
                let rows = methods.filter(|function| function.kind.resource() == Some(id));
                table(
                    "function",
                    rows.map(|f| (f.item_name(), self.signature(f), &f.docs)).collect(),
                );
            }
            TypeDefKind::Type(ty) => {
                put(out, format_args!("Another name for {}. {sentence}\n", self.typed(ty)));
            }
            _ => put(out, format_args!("{kind}. {sentence}\n")),
        }
    }

    /// `func(a: b) -> c`, without the resource of a method.
    fn signature(&self, function: &Function) -> String {
        let is_self = |name: &str| name == "self" && function.kind.resource().is_some();
        let params = function.params.iter().filter(|param| !is_self(&param.name));
        let params: Vec<String> =
            params.map(|param| format!("{}: {}", param.name, self.spelled(&param.ty))).collect();
        let word = match function.kind {
            wit_parser::FunctionKind::Static(_) => "static func",
            _ => "func",
        };
        let result = function.result.as_ref();
        let result = result.map_or(String::new(), |ty| format!(" -> {}", self.spelled(ty)));
        code(&format!("{word}({}){result}", params.join(", ")))
    }

    fn typed(&self, ty: &Type) -> String {
        code(&self.spelled(ty))
    }

    /// A type as WIT spells it, each name of another type between `\u{1}` and `\u{2}`, its link
    /// before `\u{3}`.
    fn spelled(&self, ty: &Type) -> String {
        let Type::Id(id) = ty else { return primitive(ty).to_owned() };
        let definition = &self.resolve.types[*id];
        if let Some(name) = &definition.name {
            return format!("\u{1}{}\u{3}{name}\u{2}", self.anchor(*id));
        }
        let optional =
            |ty: &Option<Type>| ty.as_ref().map_or("_".to_owned(), |ty| self.spelled(ty));
        match &definition.kind {
            TypeDefKind::Option(ty) => format!("option<{}>", self.spelled(ty)),
            TypeDefKind::List(ty) => format!("list<{}>", self.spelled(ty)),
            TypeDefKind::Result(result) => {
                format!("result<{}, {}>", optional(&result.ok), optional(&result.err))
            }
            TypeDefKind::Tuple(tuple) => {
                let types = tuple.types.iter().map(|ty| self.spelled(ty));
                format!("tuple<{}>", types.collect::<Vec<_>>().join(", "))
            }
            TypeDefKind::Handle(Handle::Own(id)) => self.spelled(&Type::Id(*id)),
            TypeDefKind::Handle(Handle::Borrow(id)) => {
                format!("borrow<{}>", self.spelled(&Type::Id(*id)))
            }
            TypeDefKind::Type(ty) => self.spelled(ty),
            other => other.as_str().to_owned(),
        }
    }

    /// The place where a type is explained: its own interface's, however it is imported.
    fn anchor(&self, id: TypeId) -> String {
        let definition = &self.resolve.types[id];
        if let TypeDefKind::Type(Type::Id(original)) = definition.kind
            && imported(definition)
        {
            return self.anchor(original);
        }
        let interface = match definition.owner {
            wit_parser::TypeOwner::Interface(id) => self.resolve.interfaces[id].name.as_deref(),
            _ => None,
        };
        let name = definition.name.as_deref().unwrap_or_default();
        // As heading `types.sample` is linked to: punctuation but hyphens goes.
        format!("{}{name}", interface.unwrap_or_default())
    }

    fn interface_link(&self, id: InterfaceId) -> String {
        let name = self.resolve.interfaces[id].name.as_deref().unwrap_or_default();
        format!("[`{name}`](#{name})")
    }
}

fn imported(definition: &TypeDef) -> bool {
    matches!(definition.kind, TypeDefKind::Type(Type::Id(_)))
}

/// Code with its links: a span of code for the text between two links.
fn code(spelled: &str) -> String {
    let mut out = String::new();
    let span = |text: &str| match text {
        "" => String::new(),
        text => format!("`{text}`"),
    };
    let mut rest = spelled;
    while let Some((before, linked)) = rest.split_once('\u{1}') {
        out.push_str(&span(before));
        let (link, after) = linked.split_once('\u{2}').unwrap_or((linked, ""));
        let (anchor, name) = link.split_once('\u{3}').unwrap_or(("", link));
        let _ = write!(out, "[`{name}`](#{anchor})");
        rest = after;
    }
    out.push_str(&span(rest));
    out
}

fn primitive(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::S8 => "s8",
        Type::S16 => "s16",
        Type::S32 => "s32",
        Type::S64 => "s64",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Char => "char",
        Type::String => "string",
        Type::ErrorContext => "error-context",
        Type::Id(_) => "_",
    }
}

fn prose(docs: &Docs) -> String {
    let text = docs.contents.as_deref().unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|")
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to memory has no way to fail.
    let _ = out.write_fmt(text);
}

fn reference(wit: &str) -> String {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("a.wit", wit).unwrap();
    markdown(&resolve, package)
}

#[test]
fn every_item_has_its_sentence_and_its_link() {
    let page = reference(
        "package a:b@1.2.3;
        /// Numbers.
        interface numbers {
            /// One of them.
            record one {
                /// An amount | a number.
                much: option<u32>,
            }
        }
        /// Sums.
        interface sums {
            use numbers.{one};
            /// A box of them.
            resource bag {
                /// Adds
                /// some.
                add: func(ones: list<one>) -> result<one, string>;
            }
            /// Adds two.
            plus: func(a: one, b: one) -> one;
        }
        /// A world.
        world w { import numbers; export sums; }",
    );
    for expected in [
        "# `a:b` 1.2.3\n",
        "### `w`\n\nA world.\n\nExports: [`sums`](#sums)\n\nImports: [`numbers`](#numbers)\n",
        "## numbers\n\nNumbers.\n\n### numbers.one\n\nA record. One of them.\n",
        "| `much` | `option<u32>` | An amount \\| a number. |\n",
        "| `add` | `func(ones: list<`[`one`](#numbersone)`>) -> result<`[`one`](#numbersone)`, string>` | Adds some. |\n",
        "### sums.plus\n\n`func(a: `[`one`](#numbersone)`, b: `[`one`](#numbersone)`) -> `[`one`](#numbersone)\n\nAdds two.\n",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
}

/// The committed page matches the contract; `BLESS=1` rewrites it.
#[test]
fn the_reference_matches_the_contract() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(root.join("wit")).unwrap();
    let page = markdown(&resolve, package);
    let path = root.join("plugins/guide/reference.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(page == committed, "plugins/guide/reference.md differs; BLESS=1 rewrites it");
    // Every link leads to a heading.
    let headings: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## ").or(line.strip_prefix("### ")))
        .map(|heading| heading.replace(['.', '`'], "").to_lowercase())
        .collect();
    for link in page.split("](#").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(headings.iter().any(|heading| heading == link), "{link}");
    }
    // And every item has a sentence.
    let bare = page.lines().find(|line| line.ends_with("|  |") || line.trim_end() == "A record.");
    assert_eq!(bare, None);
}
