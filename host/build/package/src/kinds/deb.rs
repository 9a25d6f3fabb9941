//! A Debian package: the program with its man pages and completions where Debian has them, and no
//! script that runs when it is installed.

use std::fmt::Write as _;

use anyhow::Result;
use md5::{Digest, Md5};

use super::Package;
use crate::product::Product;
use crate::sums::hex;
use crate::tree::{Level, Tree, gzip};
use crate::{COMMAND, PACKAGE_NAME, SUMMARY, version};

/// Nobody reads mail at an address of the project, and Debian's format wants one.
const MAINTAINER: &str = "The authors of runner <nobody@runner.invalid>";
/// Debian compresses its documents as hard as can be.
const HARDEST: Level = Level::HARDEST;

/// Makes `runner-llm_VERSION_ARCH.deb`.
///
/// # Errors
/// If it cannot be written.
pub fn make(product: &Product) -> Result<Vec<Package>> {
    let version = version::debian(&product.project.version);
    let machine = product.target.machine.debian();
    let files = files(product, &version)?.with_folders();
    let mut control = Tree::new();
    control.file("control", self::control(product, &version, &files));
    control.file("md5sums", digests(&files));
    let date = product.date;
    let mut archive = ar::Builder::new(Vec::new());
    let mut add = |name: &str, bytes: &[u8]| -> Result<()> {
        let mut header = ar::Header::new(name.as_bytes().to_vec(), bytes.len() as u64);
        header.set_mtime(u64::try_from(date.seconds())?);
        header.set_mode(0o100_644);
        Ok(archive.append(&header, bytes)?)
    };
    add("debian-binary", b"2.0\n")?;
    add("control.tar.gz", &control.tar_gz(date, HARDEST)?)?;
    add("data.tar.gz", &files.tar_gz(date, product.level)?)?;
    let name = format!("{PACKAGE_NAME}_{version}_{machine}.deb");
    Ok(vec![(name, archive.into_inner()?)])
}

/// The files that it installs.
fn files<'a>(product: &'a Product, version: &str) -> Result<Tree<'a>> {
    let mut tree = Tree::new();
    tree.program(format!("usr/bin/{COMMAND}"), &product.program);
    for (page, text) in &product.texts.man {
        tree.file(format!("usr/share/man/man1/{page}.gz"), gzip(text, HARDEST)?);
    }
    let places = [
        ("bash", format!("usr/share/bash-completion/completions/{COMMAND}")),
        ("fish", format!("usr/share/fish/vendor_completions.d/{COMMAND}.fish")),
        ("zsh", format!("usr/share/zsh/vendor-completions/_{COMMAND}")),
    ];
    for (shell, place) in places {
        if let Some(script) = product.texts.completions.get(shell) {
            tree.file(place, script);
        }
    }
    let documents = format!("usr/share/doc/{PACKAGE_NAME}");
    tree.file(format!("{documents}/copyright"), copyright(product));
    let changelog = gzip(changelog(product, version).as_bytes(), HARDEST)?;
    tree.file(format!("{documents}/changelog.gz"), changelog);
    let news = gzip(&product.project.changelog, HARDEST)?;
    tree.file(format!("{documents}/CHANGELOG.md.gz"), news);
    for (file, bytes) in product.contents() {
        tree.file(format!("{documents}/{file}.gz"), gzip(bytes, HARDEST)?);
    }
    if product.target.is_static {
        // On purpose: one program for every version of Debian.
        let exception = format!("{PACKAGE_NAME}: statically-linked-binary [usr/bin/{COMMAND}]\n");
        tree.file(format!("usr/share/lintian/overrides/{PACKAGE_NAME}"), exception.into_bytes());
    }
    Ok(tree)
}

/// The description of the package for `dpkg`.
fn control(product: &Product, version: &str, files: &Tree) -> Vec<u8> {
    // As dpkg counts: each file in whole KiB, and one for each folder.
    let sizes = files.files().map(|(_, bytes)| bytes.len().div_ceil(1024));
    let size = sizes.sum::<usize>() + files.folders();
    let mut text = format!(
        "Package: {PACKAGE_NAME}\n\
         Version: {version}\n\
         Architecture: {}\n\
         Maintainer: {MAINTAINER}\n\
         Installed-Size: {size}\n",
        product.target.machine.debian()
    );
    if !product.target.is_static {
        let _ = match product.elf.glibc {
            Some((major, minor)) => write!(text, "Depends: libc6 (>= {major}.{minor})"),
            None => write!(text, "Depends: libc6"),
        };
        let has_unwinder = (product.elf.needed.iter()).any(|name| name.starts_with("libgcc_s"));
        text += if has_unwinder { ", libgcc-s1\n" } else { "\n" };
    }
    text += "Section: utils\nPriority: optional\n";
    if let Some(repository) = &product.project.repository {
        let _ = writeln!(text, "Homepage: {repository}");
    }
    let _ = write!(
        text,
        "Description: {}\n \
         It measures vLLM, SGLang, LMDeploy and any server that speaks the OpenAI API,\n \
         and says with every result whether to trust it. Datasets, engines and\n \
         scorers are plugins in a sandbox; those that ship are inside the program.\n",
        // Debian's descriptions begin with a small letter.
        SUMMARY.replacen('B', "b", 1)
    );
    text.into_bytes()
}

fn copyright(product: &Product) -> Vec<u8> {
    let license = &product.project.license;
    let mut text = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
                    Upstream-Name: runner\n"
        .to_owned();
    if let Some(repository) = &product.project.repository {
        let _ = writeln!(text, "Source: {repository}");
    }
    let _ = write!(
        text,
        "\nFiles: *\n\
         Copyright: 2026 the authors of runner\n\
         License: {license}\n \
         On Debian systems, the text of this licence is in\n \
         /usr/share/common-licenses/{license}.\n \
         THIRD-PARTY.txt.gz has the licences of the crates inside.\n"
    );
    text.into_bytes()
}

fn changelog(product: &Product, version: &str) -> String {
    format!(
        "{PACKAGE_NAME} ({version}) unstable; urgency=medium\n\n  \
         * CHANGELOG.md.gz says what is new.\n\n \
         -- {MAINTAINER}  {}\n",
        product.date.rfc2822()
    )
}

/// The digests of its files, which `dpkg --verify` checks.
fn digests(files: &Tree) -> Vec<u8> {
    let mut text = String::new();
    for (path, bytes) in files.files() {
        let _ = writeln!(text, "{}  {path}", hex(&Md5::digest(bytes)));
    }
    text.into_bytes()
}
