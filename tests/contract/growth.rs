//! The permitted changes from a version of the contract to the next one with the same first number.
//!
//! A component has the types of its imports and exports in it, and the host compares them whole. So
//! a record with one field more, or a variant with one case more, is another type, which older
//! components do not fit. The host calls a component's exports: older components lack a new one.
//! The host offers a component's imports, and may offer more.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use wit_parser::{
    Function, Handle, InterfaceId, Resolve, Type, TypeDefKind, TypeId, WorldItem, WorldKey,
};

const WIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit");

/// The folders of the versions that are frozen.
fn frozen() -> Vec<PathBuf> {
    let folders = fs::read_dir(Path::new(WIT).join("frozen")).expect("wit/frozen");
    folders.map(|folder| folder.unwrap().path()).collect()
}

/// The first of the three numbers of a folder's version.
fn major(folder: &Path) -> String {
    folder.file_name().unwrap().to_string_lossy().split('.').next().unwrap().to_owned()
}

fn version(folder: &Path) -> String {
    let text = fs::read_to_string(folder.join("worlds.wit")).unwrap();
    let package = text
        .lines()
        .find_map(|line| line.strip_prefix("package runner:plugin@")?.strip_suffix(';'));
    package.expect("a package with a version").to_owned()
}

fn read(folder: &Path) -> Resolve {
    let mut resolve = Resolve::default();
    resolve.push_dir(folder).expect("a contract");
    resolve
}

/// A type as text, the same wherever it was read.
fn type_name(resolve: &Resolve, ty: &Type) -> String {
    match ty {
        Type::Id(id) => named(resolve, *id),
        plain => format!("{plain:?}").to_lowercase(),
    }
}

fn named(resolve: &Resolve, id: TypeId) -> String {
    let ty = &resolve.types[id];
    match &ty.name {
        Some(name) => {
            let wit_parser::TypeOwner::Interface(owner) = ty.owner else { return name.clone() };
            format!("{}/{name}", resolve.interfaces[owner].name.as_deref().unwrap_or_default())
        }
        None => kind(resolve, &ty.kind),
    }
}

fn kind(resolve: &Resolve, kind: &TypeDefKind) -> String {
    let of = |ty: &Type| type_name(resolve, ty);
    let maybe = |ty: &Option<Type>| ty.as_ref().map_or("_".to_owned(), of);
    let list = |parts: Vec<String>| parts.join(", ");
    match kind {
        TypeDefKind::Record(record) => {
            let fields = record.fields.iter();
            let fields = fields.map(|field| format!("{}: {}", field.name, of(&field.ty)));
            format!("record {{{}}}", list(fields.collect()))
        }
        TypeDefKind::Variant(variant) => {
            let cases = variant.cases.iter();
            let cases = cases.map(|case| format!("{}({})", case.name, maybe(&case.ty)));
            format!("variant {{{}}}", list(cases.collect()))
        }
        TypeDefKind::Enum(all) => {
            format!("enum {{{}}}", list(all.cases.iter().map(|case| case.name.clone()).collect()))
        }
        TypeDefKind::Tuple(tuple) => {
            format!("tuple<{}>", list(tuple.types.iter().map(of).collect()))
        }
        TypeDefKind::Option(ty) => format!("option<{}>", of(ty)),
        TypeDefKind::List(ty) => format!("list<{}>", of(ty)),
        TypeDefKind::Result(result) => {
            format!("result<{}, {}>", maybe(&result.ok), maybe(&result.err))
        }
        TypeDefKind::Resource => "resource".to_owned(),
        TypeDefKind::Handle(Handle::Own(id)) => format!("own {}", named(resolve, *id)),
        TypeDefKind::Handle(Handle::Borrow(id)) => format!("borrow {}", named(resolve, *id)),
        TypeDefKind::Type(ty) => of(ty),
        other => panic!("the contract had no {other:?} so far; tell it here"),
    }
}

fn call(resolve: &Resolve, function: &Function) -> String {
    let params = function.params.iter();
    let params = params.map(|param| format!("{}: {}", param.name, type_name(resolve, &param.ty)));
    let params: Vec<String> = params.collect();
    let result = function.result.as_ref().map(|ty| type_name(resolve, ty));
    format!("({}) -> {}", params.join(", "), result.unwrap_or_else(|| "nothing".to_owned()))
}

fn interface(resolve: &Resolve, name: &str) -> Option<InterfaceId> {
    let mut all = resolve.interfaces.iter();
    all.find(|(_, one)| one.name.as_deref() == Some(name)).map(|(id, _)| id)
}

/// The names of the interfaces that a world imports, or exports.
fn items(resolve: &Resolve, world: &str, exports: bool) -> BTreeSet<String> {
    let Some((_, world)) = resolve.worlds.iter().find(|(_, one)| one.name == world) else {
        return BTreeSet::new();
    };
    let items = if exports { &world.exports } else { &world.imports };
    let name = |(key, item): (&WorldKey, &WorldItem)| match (key, item) {
        (WorldKey::Name(name), _) => name.clone(),
        (_, WorldItem::Interface { id, .. }) => {
            resolve.interfaces[*id].name.clone().unwrap_or_default()
        }
        _ => String::new(),
    };
    items.iter().map(name).collect()
}

/// Lists the parts of an older contract that a newer one breaks.
fn broken(old: &Resolve, new: &Resolve) -> Vec<String> {
    let mut broken = Vec::new();
    let mut exported = BTreeSet::new();
    for (_, world) in &old.worlds {
        let name = &world.name;
        let [was, is] = [old, new].map(|resolve| items(resolve, name, false));
        let gone = was.difference(&is);
        broken.extend(gone.map(|one| format!("world {name} imports {one} no longer")));
        let [was, is] = [old, new].map(|resolve| items(resolve, name, true));
        let other = was.symmetric_difference(&is);
        broken.extend(other.map(|one| format!("world {name}: another export, {one}")));
        exported.extend(was);
    }
    for (_, was) in &old.interfaces {
        let name = was.name.as_deref().unwrap_or_default();
        let Some(is) = interface(new, name) else {
            broken.push(format!("interface {name} is gone"));
            continue;
        };
        let is = &new.interfaces[is];
        for (ty, id) in &was.types {
            let old_kind = kind(old, &old.types[*id].kind);
            match is.types.get(ty) {
                None => broken.push(format!("type {name}/{ty} is gone")),
                Some(now) if kind(new, &new.types[*now].kind) != old_kind => {
                    broken.push(format!("type {name}/{ty} is another"));
                }
                Some(_) => {}
            }
        }
        for (function, old_call) in &was.functions {
            match is.functions.get(function) {
                None => broken.push(format!("function {name}/{function} is gone")),
                Some(now) if call(new, now) != call(old, old_call) => {
                    broken.push(format!("function {name}/{function} is another"));
                }
                Some(_) => {}
            }
        }
        if exported.contains(name) {
            let more = is.functions.keys();
            let more = more.filter(|function| !was.functions.contains_key(*function));
            broken.extend(more.map(|function| {
                format!("function {name}/{function} is new, and older components do not export it")
            }));
        }
    }
    broken
}

#[test]
fn the_contract_only_grows() {
    let (now, current) = (version(Path::new(WIT)), read(Path::new(WIT)));
    let frozen = frozen();
    assert!(!frozen.is_empty());
    for folder in frozen {
        if major(&folder) == now.split('.').next().unwrap() {
            assert_eq!(broken(&read(&folder), &current), [""; 0], "{}", folder.display());
        }
        assert_eq!(version(&folder), folder.file_name().unwrap().to_string_lossy());
    }
}

/// The version in `wit/` is frozen: components are built for the text that is written there.
#[test]
fn the_version_at_hand_is_frozen() {
    let now = version(Path::new(WIT));
    let kept = Path::new(WIT).join("frozen").join(&now);
    for file in fs::read_dir(&kept).expect("cargo xtask freeze") {
        let file = file.unwrap();
        let here = Path::new(WIT).join(file.file_name());
        let (kept, here) = (read_text(&file.path()), read_text(&here));
        assert_eq!(kept, here, "{}", file.path().display());
    }
}

/// A file without its comments, whose wording may improve.
fn read_text(path: &Path) -> String {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn changes_that_break_older_components_are_found() {
    let old = read(Path::new(WIT));
    for (file, from, to, expected) in [
        (
            "types.wit",
            "        id: string,\n",
            "        id: string,\n        more: option<string>,\n",
            "type types/sample is another",
        ),
        ("types.wit", "        audio(media),\n", "", "type types/part is another"),
        (
            "backend.wit",
            "        whole,\n",
            "        whole,\n        whole-again,\n",
            "type backend/framing is another",
        ),
        (
            "backend.wit",
            "        default-url: func() -> string;\n",
            "        default-url: func() -> option<string>;\n",
            "function backend/[method]codec.default-url is another",
        ),
        (
            "backend.wit",
            "        default-url: func() -> string;\n",
            "        default-url: func() -> string;\n        more: func();\n",
            "function backend/[method]codec.more is new, and older components do not export it",
        ),
        ("log.wit", "interface log {", "interface logs {", "interface log is gone"),
        (
            "worlds.wit",
            "world scorer-plugin {\n    import log;\n",
            "world scorer-plugin {\n",
            "world scorer-plugin imports log no longer",
        ),
    ] {
        let found = changed(&old, file, from, to);
        assert!(found.iter().any(|what| what == expected), "{expected}: {found:?}");
    }
}

#[test]
fn the_host_may_offer_more_functions() {
    let old = read(Path::new(WIT));
    for (file, from, to) in [
        (
            "log.wit",
            "interface log {",
            "interface log {\n    /// More.\n    more: func(what: string) -> bool;\n    record further { a: u8 }\n",
        ),
        (
            "worlds.wit",
            "/// A scorer of answers.",
            "/// More.\ninterface more { now: func(); }\n\n/// A scorer of answers.",
        ),
        ("types.wit", "    /// Text.\n", "    /// A text.\n"),
    ] {
        assert_eq!(changed(&old, file, from, to), [""; 0], "{file}");
    }
}

/// Lists the breaks if one text in the contract becomes another.
fn changed(old: &Resolve, file: &str, from: &str, to: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(WIT).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let path = folder.path().join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} holds `{from}`");
    let text = match (file, from) {
        // The world's own import, and its use, go together.
        ("log.wit", "interface log {") if to.starts_with("interface logs") => {
            let worlds = folder.path().join("worlds.wit");
            let other = fs::read_to_string(&worlds).unwrap();
            fs::write(&worlds, other.replace("import log;", "import logs;")).unwrap();
            text.replacen(from, to, 1)
        }
        _ => text.replacen(from, to, 1),
    };
    fs::write(&path, text).unwrap();
    broken(old, &read(folder.path()))
}
