//! A container image as an archive of the OCI's image layout, made without a container runtime.
//!
//! It has no base: it holds the program, certificates, and the folder that a run writes to. Nothing
//! else is ever written, so the root may be read-only, and the program runs as a user of its own. A
//! program that needs libraries brings this machine's along.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::Package;
use crate::product::Product;
use crate::project::read;
use crate::sums::sha256;
use crate::tree::{Tree, gzip};
use crate::{COMMAND, PACKAGE_NAME, SUMMARY, version};

/// The user and the group of the program: images without a shell call them `nonroot`.
const USER: u64 = 65_532;
/// The folder that runs are written to.
const WORK: &str = "work";

/// Makes `runner-VERSION-TARGET.oci.tar`.
///
/// # Errors
/// If there are no certificates, or the libraries of the program are not on this machine.
pub fn make(product: &Product) -> Result<Vec<Package>> {
    let layer = files(product)?.with_folders().tar(product.date, Vec::new())?;
    let mut layout = Layout::default();
    let packed = gzip(&layer, product.level)?;
    let packed = layout.blob("application/vnd.oci.image.layer.v1.tar+gzip", packed);
    let labels = labels(product);
    let machine = product.target.machine.debian();
    let config = json!({
        "created": product.date.rfc3339(),
        "architecture": machine,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/bin", format!("HOME=/{WORK}")],
            "Entrypoint": [format!("/usr/bin/{COMMAND}")],
            "WorkingDir": format!("/{WORK}"),
            "Labels": labels,
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))] },
        "history": [{ "created": product.date.rfc3339(), "created_by": "cargo xtask package image" }],
    });
    let config = serde_json::to_vec(&config)?;
    let config = layout.blob("application/vnd.oci.image.config.v1+json", config);
    let name = format!("{PACKAGE_NAME}:{}", version::tag(&product.project.version));
    layout.add_docker(&name, &config, &packed)?;
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": [packed],
        "annotations": labels,
    }))?;
    let mut manifest = layout.blob(MANIFEST, manifest);
    manifest["platform"] = json!({ "architecture": machine, "os": "linux" });
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": name });
    let name = format!("{}.oci.tar", product.release_name());
    Ok(vec![(name, layout.archive(&manifest, product)?)])
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// An image layout as it grows.
#[derive(Default)]
struct Layout {
    tree: Tree<'static>,
}

impl Layout {
    /// Adds bytes, and returns the descriptor that names them.
    fn blob(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let digest = sha256(&bytes);
        let size = bytes.len();
        self.tree.file(format!("blobs/sha256/{digest}"), bytes);
        json!({ "mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size })
    }

    /// Adds the file that Docker's older store reads instead of the index. Others leave it alone.
    fn add_docker(&mut self, name: &str, config: &Value, layer: &Value) -> Result<()> {
        let path = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap_or_default();
            format!("blobs/{}", digest.replace(':', "/"))
        };
        let manifest = json!([{
            "Config": path(config),
            "RepoTags": [name],
            "Layers": [path(layer)],
        }]);
        self.tree.file("manifest.json", serde_json::to_vec(&manifest)?);
        Ok(())
    }

    /// The archive of the image with this manifest.
    fn archive(mut self, manifest: &Value, product: &Product) -> Result<Vec<u8>> {
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [manifest],
        });
        self.tree.file("index.json", serde_json::to_vec(&index)?);
        let version = json!({ "imageLayoutVersion": "1.0.0" });
        self.tree.file("oci-layout", serde_json::to_vec(&version)?);
        self.tree.with_folders().tar(product.date, Vec::new())
    }
}

/// The files of the image.
fn files(product: &Product) -> Result<Tree<'_>> {
    let mut tree = Tree::new();
    tree.program(format!("usr/bin/{COMMAND}"), &product.program);
    let documents = format!("usr/share/doc/{PACKAGE_NAME}");
    tree.file(format!("{documents}/LICENSE"), &product.project.license_text);
    for (file, bytes) in product.contents() {
        tree.file(format!("{documents}/{file}"), bytes);
    }
    let users = format!(
        "root:x:0:0:root:/:/sbin/nologin\n{COMMAND}:x:{USER}:{USER}:{COMMAND}:/{WORK}:/sbin/nologin\n"
    );
    tree.file("etc/passwd", users.into_bytes());
    let groups = format!("root:x:0:\n{COMMAND}:x:{USER}:\n");
    tree.file("etc/group", groups.into_bytes());
    let certificates = read(&product.certificates).context(
        "the image needs certificates: install ca-certificates, or give --certificates FILE",
    )?;
    tree.file("etc/ssl/certs/ca-certificates.crt", certificates);
    tree.folder("tmp", 0o1777, 0);
    tree.folder(WORK, 0o755, USER);
    if !product.target.is_static {
        for path in libraries(&product.path)? {
            let bytes = read(Path::new(&path))?;
            tree.program(path.trim_start_matches('/').to_owned(), bytes);
        }
    }
    Ok(tree)
}

/// The loader and the libraries of a program of this machine, where the loader looks for them.
fn libraries(program: &Path) -> Result<Vec<String>> {
    let output = Command::new("ldd").arg(program).output();
    let output = output.context("`ldd`, which finds the program's libraries, does not start")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && !text.contains("not found"),
        "`ldd {}` does not find the program's libraries: {text}{}",
        program.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(listed(&text))
}

/// The paths in `ldd`'s output. The kernel's own library has none.
fn listed(text: &str) -> Vec<String> {
    let words = |line: &str| {
        let path = line.split_once("=>").map_or(line, |(_, path)| path);
        let path = path.split_whitespace().next()?;
        path.starts_with('/').then(|| path.to_owned())
    };
    text.lines().filter_map(words).collect()
}

/// The image's description of itself.
fn labels(product: &Product) -> Value {
    let mut labels = json!({
        "org.opencontainers.image.created": product.date.rfc3339(),
        "org.opencontainers.image.title": PACKAGE_NAME,
        "org.opencontainers.image.description": SUMMARY,
        "org.opencontainers.image.version": product.project.version,
        "org.opencontainers.image.licenses": product.project.license,
    });
    if let Some(repository) = &product.project.repository {
        labels["org.opencontainers.image.source"] = json!(repository);
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn libraries_are_what_ldd_finds() {
        let text = "\tlinux-vdso.so.1 (0x00007f29aa90d000)\n\
                    \tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f29aa7fb000)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f29aa90f000)\n";
        let expected = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(listed(text), expected);
        assert!(listed("\tstatically linked\n").is_empty());
    }
}
