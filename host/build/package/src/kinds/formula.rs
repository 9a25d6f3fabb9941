//! Descriptions that install the released archives by their digest: a formula for Homebrew, and a
//! package and a flake for Nix.
//!
//! They are made of the archives in the folder of packages, of whatever machines there are.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::write;
use crate::project::{Project, read};
use crate::sums::hex;
use crate::target::{Machine, Target};
use crate::{COMMAND, PACKAGE_NAME, SUMMARY};

/// An archive in the folder.
struct Archive {
    machine: Machine,
    /// The name without its ending.
    name: String,
    /// Address of the download.
    url: String,
    digest: Vec<u8>,
}

/// Makes `runner-llm.rb`, `package.nix` and `flake.nix`, and writes them beside the archives.
///
/// # Errors
/// If the project has no repository, or the folder no archive of a static program.
pub fn make(project: &Project, folder: &Path) -> Result<Vec<PathBuf>> {
    let repository = project.repository.as_deref().context(
        "formulas say where archives are: give --repository URL, or set `workspace.package.repository` in Cargo.toml",
    )?;
    let archives = archives(project, repository, folder)?;
    let files = vec![
        (format!("{PACKAGE_NAME}.rb"), homebrew(project, repository, &archives)),
        ("package.nix".to_owned(), nix(project, repository, &archives)),
        ("flake.nix".to_owned(), flake(&archives)),
    ];
    let files = files.into_iter().map(|(name, text)| (name, text.into_bytes()));
    write(files.collect(), folder)
}

/// The archives of static programs: others do not run wherever Homebrew and Nix do.
fn archives(project: &Project, repository: &str, folder: &Path) -> Result<Vec<Archive>> {
    let version = &project.version;
    let mut archives = Vec::new();
    for machine in [Machine::X86_64, Machine::Aarch64] {
        let target = Target { machine, is_static: true };
        let name = format!("runner-{version}-{target}");
        let path = folder.join(format!("{name}.tar.gz"));
        if path.exists() {
            archives.push(Archive {
                machine,
                url: format!("{repository}/releases/download/v{version}/{name}.tar.gz"),
                name,
                digest: Sha256::digest(read(&path)?).to_vec(),
            });
        }
    }
    ensure!(
        !archives.is_empty(),
        "{} has no runner-{version}-MACHINE-unknown-linux-musl.tar.gz: make the archive of a static program first",
        folder.display()
    );
    Ok(archives)
}

fn homebrew(project: &Project, repository: &str, archives: &[Archive]) -> String {
    let mut text = format!(
        "class RunnerLlm < Formula\n  \
           desc \"{SUMMARY}\"\n  \
           homepage \"{repository}\"\n  \
           version \"{}\"\n  \
           license \"{}\"\n\n  \
           depends_on :linux\n\n  \
           on_linux do\n",
        project.version, project.license
    );
    for archive in archives {
        let processor = match archive.machine {
            Machine::X86_64 => "intel",
            Machine::Aarch64 => "arm",
        };
        let _ = write!(
            text,
            "    on_{processor} do\n      url \"{}\"\n      sha256 \"{}\"\n    end\n",
            archive.url,
            hex(&archive.digest)
        );
    }
    let _ = write!(
        text,
        "  end\n\n  \
           def install\n    \
             bin.install \"{COMMAND}\"\n    \
             man1.install Dir[\"man/*.1\"]\n    \
             bash_completion.install \"completions/{COMMAND}.bash\" => \"{COMMAND}\"\n    \
             fish_completion.install \"completions/{COMMAND}.fish\"\n    \
             zsh_completion.install \"completions/_{COMMAND}\"\n  \
           end\n\n  \
           test do\n    \
             assert_match version.to_s, shell_output(\"#{{bin}}/{COMMAND} --version\")\n  \
           end\n\
         end\n"
    );
    text
}

/// The package for Nix. A static program needs no patches there.
fn nix(project: &Project, repository: &str, archives: &[Archive]) -> String {
    let mut sources = String::new();
    for archive in archives {
        let _ = write!(
            sources,
            "    {}-linux = {{\n      \
                   name = \"{}\";\n      \
                   url = \"{}\";\n      \
                   hash = \"sha256-{}\";\n    \
                 }};\n",
            archive.machine.name(),
            archive.name,
            archive.url,
            STANDARD.encode(&archive.digest)
        );
    }
    let license = match project.license.as_str() {
        "Apache-2.0" => "lib.licenses.asl20".to_owned(),
        other => format!("lib.getLicenseFromSpdxId \"{other}\""),
    };
    format!(
        r#"{{ lib, stdenvNoCC, fetchurl, installShellFiles }}:

let
  sources = {{
{sources}  }};
  source = sources.${{stdenvNoCC.hostPlatform.system}}
    or (throw "{PACKAGE_NAME}: no program for ${{stdenvNoCC.hostPlatform.system}}");
in
stdenvNoCC.mkDerivation {{
  pname = "{PACKAGE_NAME}";
  version = "{version}";

  src = fetchurl {{ inherit (source) url hash; }};
  sourceRoot = source.name;
  nativeBuildInputs = [ installShellFiles ];
  dontBuild = true;

  installPhase = ''
    runHook preInstall
    install -D -m 755 {COMMAND} $out/bin/{COMMAND}
    installManPage man/*.1
    installShellCompletion --cmd {COMMAND} \
      --bash completions/{COMMAND}.bash \
      --fish completions/{COMMAND}.fish \
      --zsh completions/_{COMMAND}
    runHook postInstall
  '';

  meta = {{
    description = "{SUMMARY}";
    homepage = "{repository}";
    license = {license};
    mainProgram = "{COMMAND}";
    platforms = builtins.attrNames sources;
    sourceProvenance = [ lib.sourceTypes.binaryNativeCode ];
  }};
}}
"#,
        version = project.version
    )
}

fn flake(archives: &[Archive]) -> String {
    let systems: Vec<String> =
        archives.iter().map(|archive| format!("\"{}-linux\"", archive.machine.name())).collect();
    format!(
        r#"{{
  description = "{SUMMARY}";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = {{ self, nixpkgs }}: {{
    packages = nixpkgs.lib.genAttrs [ {systems} ] (system: {{
      default = nixpkgs.legacyPackages.${{system}}.callPackage ./package.nix {{ }};
    }});
  }};
}}
"#,
        systems = systems.join(" ")
    )
}
