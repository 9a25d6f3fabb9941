//! An archive to unpack anywhere: the program, its man pages and completions, and the documents.

use anyhow::Result;

use super::Package;
use crate::COMMAND;
use crate::product::Product;
use crate::tree::Tree;

/// Makes `runner-VERSION-TARGET.tar.gz`, and `runner-VERSION-TARGET.cdx.json` with its bill of
/// materials.
///
/// # Errors
/// If it cannot be written.
pub fn make(product: &Product) -> Result<Vec<Package>> {
    let name = product.release_name();
    let mut tree = Tree::new();
    tree.program(format!("{name}/{COMMAND}"), &product.program);
    tree.file(format!("{name}/LICENSE"), &product.project.license_text);
    tree.file(format!("{name}/README.md"), &product.project.readme);
    tree.file(format!("{name}/CHANGELOG.md"), &product.project.changelog);
    for (file, bytes) in product.contents() {
        tree.file(format!("{name}/{file}"), bytes);
    }
    for (page, text) in &product.texts.man {
        tree.file(format!("{name}/man/{page}"), text);
    }
    for (file, script) in product.texts.completion_files() {
        tree.file(format!("{name}/completions/{file}"), script);
    }
    let bytes = tree.with_folders().tar_gz(product.date, product.level)?;
    let mut packages = vec![(format!("{name}.tar.gz"), bytes)];
    // Beside it too, where tools that check releases read it without unpacking.
    if let Some(sbom) = &product.sbom {
        packages.push((format!("{name}.cdx.json"), sbom.clone()));
    }
    Ok(packages)
}
