#!/usr/bin/env python3
"""Makes packages: a wheel by maturin, and archives, Debian packages, packages for npm and images of its program."""

import argparse
import gzip
import hashlib
import json
import os
import platform
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

from notices import ROOT, notices, output

HERE = Path(__file__).resolve().parent
NOTICES = ROOT / "target/THIRD-PARTY.txt"
NAME = "runner-llm"
# A processor's name in Debian and in npm.
MACHINES = {"x86_64": ("amd64", "x64"), "aarch64": ("arm64", "arm64")}
# The places of completions below `/usr/share`.
COMPLETIONS = {
    "bash": "bash-completion/completions/runner",
    "fish": "fish/vendor_completions.d/runner.fish",
    "zsh": "zsh/vendor-completions/_runner",
}


def run(*words):
    subprocess.run([str(word) for word in words], cwd=ROOT, check=True)


def write(path, content, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)


def host():
    return output("rustc", "-vV").split("host: ")[1].split()[0]


def prepare(target):
    """Makes the parts of a wheel that cargo does not make: the plugins inside the program, and the notices."""
    run("cargo", "xtask", "plugins", "--shipping")
    text = notices(target)
    write(NOTICES, text)
    return text


def wheel(target, folder, scratch):
    """Makes the wheel. Returns its program, and the bill of materials in it."""
    tags = ["manylinux_2_17", *(["musllinux_1_2"] if (target or "").endswith("-musl") else [])]
    other = ["--zig", f"--target={target}", "--compatibility", *tags] if target else []
    run("maturin", "build", "--locked", "--release", f"--out={scratch}", *other)
    (made,) = scratch.glob("*.whl")
    with zipfile.ZipFile(made) as files:
        (program,) = (name for name in files.namelist() if name.endswith(".data/scripts/runner"))
        (bill,) = (name for name in files.namelist() if name.endswith("/sboms/runner.cyclonedx.json"))
        write(scratch / "runner", files.read(program), 0o755)
        write(folder / made.name, made.read_bytes())
        return scratch / "runner", files.read(bill)


class Product:
    """The program, its texts, and the facts that every kind of package states."""

    def __init__(self, program, target, bill, licences, scratch):
        known = json.loads(output("cargo", "metadata", "--no-deps", "--locked", "--format-version=1"))
        (self.facts,) = (package for package in known["packages"] if package["name"] == "runner")
        self.program, self.target, self.bill, self.version = program, target, bill, self.facts["version"]
        found = output(program, "--version").split()[-1]
        if found != self.version:
            raise SystemExit(f"package: the program has version {found}, and Cargo.toml {self.version}: build it again")
        self.stem = f"runner-{self.version}-{target}"
        self.debian, self.node = MACHINES[target.split("-")[0]]
        run(program, "man", "--output", scratch / "man")
        self.man = {page.name: page.read_bytes() for page in sorted((scratch / "man").iterdir())}
        self.completions = {shell: output(program, "completions", shell) for shell in COMPLETIONS}
        self.documents = {file: (ROOT / file).read_bytes() for file in ("LICENSE", "README.md", "CHANGELOG.md")}
        self.documents[NOTICES.name] = licences.encode()


def pack(folder, name, packed):
    def of_root(entry):
        entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, "root", "root"
        return entry

    with tarfile.open(packed, "w:gz", compresslevel=6) as packed:
        packed.add(folder, name, filter=of_root)


def archive(product, folder, scratch):
    write(scratch / "runner", product.program.read_bytes(), 0o755)
    for name, text in product.documents.items():
        write(scratch / name, text)
    for name, page in product.man.items():
        write(scratch / "man" / name, page)
    for shell, text in product.completions.items():
        write(scratch / "completions" / ("_runner" if shell == "zsh" else f"runner.{shell}"), text)
    pack(scratch, product.stem, folder / f"{product.stem}.tar.gz")
    if product.bill:
        write(folder / f"{product.stem}.cdx.json", product.bill)


def npm(product, folder, scratch):
    name = f"{NAME}-linux-{product.node}"
    manifest = {"name": name, **{key: product.facts[key] for key in ("version", "description", "license")}}
    manifest |= {"bin": {"runner": "bin/runner"}, "os": ["linux"], "cpu": [product.node]}
    if product.target.endswith("-gnu"):
        manifest["libc"] = ["glibc"]
    if product.facts["repository"]:
        manifest["repository"] = {"type": "git", "url": f"git+{product.facts['repository']}.git"}
    write(scratch / "package.json", json.dumps(manifest, indent=2) + "\n")
    for file in ("LICENSE", "README.md", NOTICES.name):
        write(scratch / file, product.documents[file])
    write(scratch / "bin/runner", product.program.read_bytes(), 0o755)
    pack(scratch, "package", folder / f"{name}-{product.version}.tgz")


def deb(product, folder, scratch):
    share = scratch / "usr/share"
    write(scratch / "usr/bin/runner", product.program.read_bytes(), 0o755)
    for name, page in product.man.items():
        write(share / f"man/man1/{name}.gz", gzip.compress(page))
    for shell, place in COMPLETIONS.items():
        write(share / place, product.completions[shell])
    write(share / "doc" / NAME / "copyright", product.documents["LICENSE"])
    for file in ("CHANGELOG.md", NOTICES.name):
        write(share / "doc" / NAME / f"{file}.gz", gzip.compress(product.documents[file]))
    files = [file for file in sorted(scratch.rglob("*")) if file.is_file()]
    sums = [f"{hashlib.md5(file.read_bytes()).hexdigest()}  {file.relative_to(scratch)}\n" for file in files]
    # `libc_ver` finds the newest glibc that the program calls.
    libraries = f"libc6 (>= {platform.libc_ver(product.program)[1]}), libgcc-s1"
    control = [
        f"Package: {NAME}\nVersion: {product.version}\nArchitecture: {product.debian}",
        # Debian wants an address, and nobody reads mail at an address of the project.
        "Maintainer: The authors of runner <nobody@runner.invalid>\nSection: utils\nPriority: optional",
        f"Installed-Size: {sum(file.stat().st_size for file in files) // 1024 + 1}",
        *([f"Depends: {libraries}"] if product.target.endswith("-gnu") else []),
        "Description: benchmark runner for LLM serving engines\n",
    ]
    write(scratch / "DEBIAN/control", "\n".join(control))
    write(scratch / "DEBIAN/md5sums", "".join(sums))
    name = f"{NAME}_{product.version}_{product.debian}.deb"
    run("dpkg-deb", "--root-owner-group", "-Zgzip", "-z6", "--build", scratch, folder / name)


def image(product, folder, scratch):
    root = scratch / "root"
    write(root / "usr/bin/runner", product.program.read_bytes(), 0o755)
    for file in ("LICENSE", NOTICES.name):
        write(root / "usr/share/doc" / NAME / file, product.documents[file])
    write(root / "etc/passwd", "root:x:0:0::/:/sbin/nologin\nrunner:x:65532:65532::/work:/sbin/nologin\n")
    write(root / "etc/ssl/certs/ca-certificates.crt", Path("/etc/ssl/certs/ca-certificates.crt").read_bytes())
    if product.target.endswith("-gnu"):
        for library in (word for word in output("ldd", product.program).split() if word.startswith("/")):
            write(root / library[1:], Path(library).read_bytes(), 0o755)
    for name, mode in (("root/tmp", 0o1777), ("work", 0o755)):
        (scratch / name).mkdir()
        (scratch / name).chmod(mode)
    labels = {"title": NAME, "version": product.version, "licenses": product.facts["license"]}
    labels |= {"source": product.facts["repository"]} if product.facts["repository"] else {}
    labels = [f"--label=org.opencontainers.image.{key}={value}" for key, value in labels.items()]
    tag, saved = f"{NAME}:{product.version}", folder / f"{product.stem}.oci.tar"
    run("podman", "build", "--isolation=chroot", *labels, "--tag", tag, "--file", HERE / "Containerfile", scratch)
    saved.unlink(missing_ok=True)
    run("podman", "save", "--format=oci-archive", "--output", saved, tag)


def main():
    kinds = {kind.__name__: kind for kind in (archive, deb, npm, image)}
    parser = argparse.ArgumentParser(prog="cargo xtask package", description="Makes packages of the program.")
    parser.add_argument("kinds", nargs="+", choices=["wheel", *kinds], help="kinds of packages")
    parser.add_argument("--program", type=Path, help="package this program; by default, maturin compiles one")
    parser.add_argument("--target", help="the program's target; maturin then links with zig")
    parser.add_argument("--output", type=Path, default=ROOT / "target/packages", help="the default is target/packages")
    asked = parser.parse_args()
    if asked.program and "wheel" in asked.kinds:
        parser.error("maturin compiles the program of a wheel; leave out --program")
    os.umask(0o022)
    folder, target = asked.output.resolve(), asked.target or host()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        if asked.program:
            program, bill, licences = asked.program.resolve(), None, notices(target)
        else:
            licences = prepare(target)
            program, bill = wheel(asked.target, folder, scratch)
        product = Product(program, target, bill, licences, scratch)
        for kind in set(asked.kinds) & set(kinds):
            kinds[kind](product, folder, scratch / kind)


if __name__ == "__main__":
    main()
