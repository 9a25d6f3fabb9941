//! Packages for npm: one that everybody installs, and one with the program for each machine; npm
//! takes the matching one.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::Package;
use crate::product::Product;
use crate::project::Project;
use crate::target::Machine;
use crate::tree::Tree;
use crate::{COMMAND, PACKAGE_NAME, SUMMARY};

/// The command of the first package: it finds the program and starts it.
const LAUNCHER: &str = include_str!("launcher.js");
/// The machines that have a package.
const MACHINES: [Machine; 2] = [Machine::X86_64, Machine::Aarch64];

/// Makes `runner-llm-VERSION.tgz`, which is the same for every machine, and
/// `runner-llm-linux-MACHINE-VERSION.tgz`.
///
/// # Errors
/// If they cannot be written.
pub fn make(product: &Product) -> Result<Vec<Package>> {
    let version = &product.project.version;
    let own = name_for(product.target.machine);
    Ok(vec![
        (format!("{PACKAGE_NAME}-{version}.tgz"), packed(&launching(&product.project)?, product)?),
        (format!("{own}-{version}.tgz"), packed(&with_program(product, &own)?, product)?),
    ])
}

fn packed(tree: &Tree, product: &Product) -> Result<Vec<u8>> {
    tree.tar_gz(product.date, product.level)
}

fn name_for(machine: Machine) -> String {
    format!("{PACKAGE_NAME}-linux-{}", machine.node())
}

/// The package that everybody installs.
fn launching(project: &Project) -> Result<Tree<'_>> {
    let mut manifest = manifest(project, PACKAGE_NAME, SUMMARY);
    manifest["bin"] = json!({ COMMAND: format!("bin/{COMMAND}.js") });
    let programs: Map<String, Value> =
        MACHINES.map(|machine| (name_for(machine), json!(project.version))).into_iter().collect();
    manifest["optionalDependencies"] = Value::Object(programs);
    manifest["engines"] = json!({ "node": ">=18" });
    let mut tree = tree(project, &manifest)?;
    tree.program(format!("package/bin/{COMMAND}.js"), LAUNCHER.as_bytes());
    Ok(tree)
}

/// The package with the program.
fn with_program<'a>(product: &'a Product, name: &str) -> Result<Tree<'a>> {
    let summary = format!("{SUMMARY}: the program for linux-{}", product.target.machine.node());
    let mut manifest = manifest(&product.project, name, &summary);
    manifest["os"] = json!(["linux"]);
    manifest["cpu"] = json!([product.target.machine.node()]);
    if !product.target.is_static {
        manifest["libc"] = json!(["glibc"]);
    }
    // Packers that keep packages in archives have to unpack a program.
    manifest["preferUnplugged"] = json!(true);
    let mut tree = tree(&product.project, &manifest)?;
    tree.program(format!("package/bin/{COMMAND}"), &product.program);
    for (file, bytes) in product.contents() {
        tree.file(format!("package/{file}"), bytes);
    }
    Ok(tree)
}

fn manifest(project: &Project, name: &str, summary: &str) -> Value {
    let mut manifest = json!({
        "name": name,
        "version": project.version,
        "description": summary,
        "license": project.license,
    });
    if let Some(repository) = &project.repository {
        manifest["repository"] = json!({ "type": "git", "url": format!("git+{repository}.git") });
    }
    manifest
}

fn tree<'a>(project: &'a Project, manifest: &Value) -> Result<Tree<'a>> {
    let mut tree = Tree::new();
    let mut text = serde_json::to_vec_pretty(manifest)?;
    text.push(b'\n');
    tree.file("package/package.json", text);
    tree.file("package/LICENSE", &project.license_text);
    tree.file("package/README.md", &project.readme);
    Ok(tree)
}
