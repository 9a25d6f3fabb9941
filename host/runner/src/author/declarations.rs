//! TypeScript declarations of the contract, from which editors complete and check plugins in
//! JavaScript.
//!
//! Two files: the types, which are exported, and the modules that a plugin imports. The mapping is
//! componentize-qjs's: names in camel case, an absent `option` as null, bytes as `Uint8Array`, a
//! `variant` as an object with `tag` and `val`, an `enum` as a string, and the error of a `result`
//! as an exception.

use std::collections::BTreeSet;
use std::path::Path;

use wit_parser::{
    Docs, Function, FunctionKind, Handle, InterfaceId, Resolve, Type, TypeDefKind, TypeId,
    TypeOwner, WorldItem,
};

use super::c::resolved;
use model::plugin::Kind;

/// The declarations of a world.
#[derive(Debug)]
pub struct Declarations {
    /// The types, for `import("./contract")`.
    pub contract: String,
    pub modules: String,
}

const HEADING: &str = "// The types of the plugin interface, for editors. `runner plugin new` and `runner plugin build` write this \
    file; the interface\n// itself is in `wit/`.\n";

pub fn declarations(wit: &Path, kind: Kind) -> Result<Declarations, String> {
    let (resolve, world) = resolved(wit, kind)?;
    let world = &resolve.worlds[world];
    let interface = |item: &WorldItem| match item {
        WorldItem::Interface { id, .. } => Some(*id),
        _ => None,
    };
    let mut contract = HEADING.to_owned();
    let mut seen = BTreeSet::new();
    let all = world.imports.values().chain(world.exports.values());
    for id in all.filter_map(interface) {
        for (name, ty) in &resolve.interfaces[id].types {
            // A type of another interface is declared there.
            if matches!(&resolve.types[*ty].kind, TypeDefKind::Type(Type::Id(_))) {
                continue;
            }
            if seen.insert(name.clone()) {
                contract.push('\n');
                contract.push_str(&declared(&resolve, id, name, *ty));
            }
        }
    }
    let mut modules = HEADING.to_owned();
    for id in world.imports.values().filter_map(interface) {
        let functions = &resolve.interfaces[id].functions;
        let Some(name) = resolve.id_of(id).filter(|_| !functions.is_empty()) else { continue };
        let there = Names { resolve: &resolve, prefix: "import(\"./contract\")." };
        modules.push_str(&format!("\ndeclare module \"{name}\" {{\n  const all: {{\n"));
        for function in functions.values() {
            if let FunctionKind::Freestanding = function.kind {
                modules.push_str(&documented(&function.docs, "    "));
                modules.push_str(&format!("    {}\n", there.method(function, &function.name)));
            }
        }
        for (name, ty) in &resolve.interfaces[id].types {
            if let TypeDefKind::Resource = resolve.types[*ty].kind {
                let name = pascal(name);
                modules.push_str(&format!("    {name}: typeof {}{name};\n", there.prefix));
            }
        }
        modules.push_str("  };\n  export default all;\n}\n");
    }
    Ok(Declarations { contract, modules })
}

fn declared(resolve: &Resolve, interface: InterfaceId, name: &str, id: TypeId) -> String {
    let here = Names { resolve, prefix: "" };
    let ty = &resolve.types[id];
    let docs = documented(&ty.docs, "");
    let name = pascal(name);
    let body = match &ty.kind {
        TypeDefKind::Record(record) => {
            let fields = record.fields.iter().map(|field| {
                let docs = documented(&field.docs, "  ");
                format!("{docs}  {}: {};\n", camel(&field.name), here.spelled(&field.ty))
            });
            format!("export interface {name} {{\n{}}}\n", fields.collect::<String>())
        }
        TypeDefKind::Variant(variant) => {
            let cases = variant.cases.iter().map(|case| {
                let value = case.ty.as_ref().map(|ty| format!("; val: {}", here.spelled(ty)));
                let value = value.unwrap_or_default();
                (&case.docs, format!("{{ tag: \"{}\"{value} }}", case.name))
            });
            union(&name, cases)
        }
        TypeDefKind::Enum(words) => {
            union(&name, words.cases.iter().map(|case| (&case.docs, format!("\"{}\"", case.name))))
        }
        TypeDefKind::Resource => {
            let functions = resolve.interfaces[interface].functions.values();
            let methods = functions.filter_map(|function| {
                let (of, is_static) = match function.kind {
                    FunctionKind::Method(of) => (of, false),
                    FunctionKind::Static(of) => (of, true),
                    _ => return None,
                };
                let own = function.name.rsplit('.').next().filter(|_| of == id)?;
                let word = if is_static { "static " } else { "" };
                let docs = documented(&function.docs, "  ");
                Some(format!("{docs}  {word}{}\n", here.method(function, own)))
            });
            format!("export class {name} {{\n{}}}\n", methods.collect::<String>())
        }
        _ => format!("export type {name} = {};\n", here.kind(&ty.kind)),
    };
    docs + &body
}

fn union<'d>(name: &str, cases: impl Iterator<Item = (&'d Docs, String)>) -> String {
    let cases = cases.map(|(docs, case)| format!("{}  | {case}\n", documented(docs, "  ")));
    format!("export type {name} =\n{};\n", cases.collect::<String>().trim_end())
}

/// The names of types, from where they are written.
struct Names<'r> {
    resolve: &'r Resolve,
    /// The text before the name of a type of the contract.
    prefix: &'static str,
}

impl Names<'_> {
    fn spelled(&self, ty: &Type) -> String {
        match ty {
            Type::Bool => "boolean".to_owned(),
            Type::Char | Type::String => "string".to_owned(),
            Type::Id(id) => self.id(*id),
            _ => "number".to_owned(),
        }
    }

    fn id(&self, id: TypeId) -> String {
        let ty = &self.resolve.types[id];
        match (&ty.name, &ty.owner) {
            (Some(name), TypeOwner::Interface(_)) => format!("{}{}", self.prefix, pascal(name)),
            _ => self.kind(&ty.kind),
        }
    }

    fn kind(&self, kind: &TypeDefKind) -> String {
        match kind {
            TypeDefKind::Type(ty) => self.spelled(ty),
            TypeDefKind::Option(ty) => format!("{} | null", self.spelled(ty)),
            TypeDefKind::List(Type::U8) => "Uint8Array".to_owned(),
            TypeDefKind::List(ty) => match self.spelled(ty) {
                inner if inner.contains(" | ") => format!("({inner})[]"),
                inner => format!("{inner}[]"),
            },
            TypeDefKind::Tuple(tuple) => {
                let types: Vec<String> = tuple.types.iter().map(|ty| self.spelled(ty)).collect();
                format!("[{}]", types.join(", "))
            }
            TypeDefKind::Handle(Handle::Own(id) | Handle::Borrow(id)) => self.id(*id),
            // The error is thrown.
            TypeDefKind::Result(result) => self.returned(result.ok.as_ref()),
            _ => "unknown".to_owned(),
        }
    }

    fn method(&self, function: &Function, name: &str) -> String {
        let is_method = matches!(function.kind, FunctionKind::Method(_));
        let params = function.params.iter().skip(usize::from(is_method));
        let params =
            params.map(|param| format!("{}: {}", camel(&param.name), self.spelled(&param.ty)));
        let params = params.collect::<Vec<_>>().join(", ");
        format!("{}({params}): {};", camel(name), self.returned(function.result.as_ref()))
    }

    fn returned(&self, ty: Option<&Type>) -> String {
        ty.map_or_else(|| "void".to_owned(), |ty| self.spelled(ty))
    }
}

fn documented(docs: &Docs, indent: &str) -> String {
    let Some(text) = &docs.contents else { return String::new() };
    let lines: Vec<&str> = text.trim().lines().collect();
    match lines.as_slice() {
        [line] => format!("{indent}/** {line} */\n"),
        lines => {
            let lines = lines.iter().map(|line| format!("{indent} * {}\n", line.trim()));
            format!("{indent}/**\n{}{indent} */\n", lines.collect::<String>())
        }
    }
}

fn pascal(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    words.collect()
}

fn camel(name: &str) -> String {
    let name = pascal(name);
    let (first, rest) = name.split_at(name.len().min(1));
    first.to_ascii_lowercase() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declarations_of(kind: Kind) -> Declarations {
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        declarations(&wit, kind).unwrap()
    }

    #[test]
    fn declares_the_types_of_a_backend() {
        let Declarations { contract, modules } = declarations_of(Kind::Backend);
        for line in [
            "export interface Sample {",
            "  outputTokens: number | null;",
            "  headers: [string, string][];",
            "  body: Uint8Array;",
            "  | { tag: \"header\"; val: string }",
            "  | { tag: \"none\" };",
            "  | \"list-models\"",
            "export class Codec {",
            "  static open(config: Json): Codec;",
            "  encode(sample: Sample, settings: Settings, earlier: Earlier | null): Call;",
            "  /** HTTP method: `GET`, `POST`, `PUT` or `DELETE`. */",
        ] {
            assert!(contract.lines().any(|found| found == line), "{line}\n{contract}");
        }
        assert!(modules.contains("declare module \"runner:plugin/log@1.0.0\" {"), "{modules}");
        assert!(
            modules
                .contains("    write(level: import(\"./contract\").Level, message: string): void;"),
            "{modules}"
        );
        assert!(!modules.contains("tokenizer@"), "a backend has no tokenizer");
    }

    #[test]
    fn declares_files_and_a_tokenizer_for_a_dataset() {
        let Declarations { contract, modules } = declarations_of(Kind::Dataset);
        assert!(modules.contains("    File: typeof import(\"./contract\").File;"), "{modules}");
        assert!(modules.contains("    countChat("), "{modules}");
        assert!(contract.contains("  static open(name: string): File | null;"), "{contract}");
    }
}
