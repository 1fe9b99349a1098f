//! `cargo xtask package`: what is released for Linux on x86-64, in `target/package/out`, each
//! checked: a stripped binary that runs on glibc 2.28 and loads CUDA at run time, a manylinux
//! wheel, a source distribution, a Debian package, the crates for crates.io, checksums.
//!
//! Needs PyPI (ziglang links against an old glibc on any machine), rustup's target and, for the
//! Debian package, `dpkg-deb`. One build with link-time optimisation takes about a quarter of an
//! hour on two cores; the wheel is a second one.

mod debian;
mod tools;

use crate::process::{root, watch};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;
use tools::Tools;

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The oldest C library that the binary and the wheel run on: Debian 10, RHEL 8.
const GLIBC: (u32, u32) = (2, 28);
/// The binary and the installed wheel stay below this, in bytes.
pub const LIMIT: u64 = 25_000_000;
/// Installing the wheel takes less than this.
const INSTALL_SECONDS: f64 = 5.0;

/// Crates that strangers may depend on, with what they need.
const CRATES: &[&str] =
    &["vocabulary", "formats", "numerics", "random", "figures", "accounting", "audit"];

/// Makes everything, or the parts that are named: `binary`, `wheel`, `sdist`, `debian`, `crates`.
///
/// # Errors
/// What cannot be built, and what a check finds.
pub fn run(parts: &[String]) -> Result<ExitCode> {
    let known = ["binary", "wheel", "sdist", "debian", "crates"];
    if let Some(other) = parts.iter().find(|part| !known.contains(&part.as_str())) {
        bail!("unknown part `{other}`; there are {}", known.join(", "));
    }
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|asked| asked == part);
    let folder = root().join("target/package");
    let out = folder.join("out");
    fs::create_dir_all(&out)?;
    if wanted("crates") {
        crates(&out)?;
    }
    if parts == ["crates"] {
        return Ok(ExitCode::SUCCESS);
    }
    let tools = Tools::prepare(&folder.join("venv"))?;
    let version = version()?;
    if wanted("binary") || wanted("debian") {
        let binary = binary(&tools)?;
        let staged = stage(&binary, &folder.join("stage"))?;
        if wanted("binary") {
            tarball(&staged, &out, &version)?;
        }
        if wanted("debian") {
            debian::package(&staged, &folder.join("debian"), &out, &version)?;
        }
    }
    if wanted("wheel") {
        wheel(&tools, &folder.join("installed"), &out)?;
    }
    if wanted("sdist") {
        sdist(&tools, &folder, &out)?;
    }
    checksums(&out)?;
    println!("== package: {}", out.display());
    Ok(ExitCode::SUCCESS)
}

/// The version of the workspace.
fn version() -> Result<String> {
    let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml"))?.parse()?;
    let version = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("package")?.get("version")?.as_str());
    Ok(version.context("Cargo.toml has a version")?.to_owned())
}

/// The program, built for an old C library and checked.
fn binary(tools: &Tools) -> Result<PathBuf> {
    let mut build = tools.command("cargo-zigbuild");
    let target = format!("{TARGET}.{}.{}", GLIBC.0, GLIBC.1);
    build.args(["zigbuild", "--locked", "--profile", "dist", "--target", &target]);
    build.args(["-p", "dosimeter", "--features", "full"]).current_dir(root());
    // The Python module's settings are for another build.
    build.env_remove("PYO3_BUILD_EXTENSION_MODULE");
    must(build, "the binary")?;
    let path = root().join("target").join(TARGET).join("dist/dosimeter");
    check_binary(&path)?;
    let mut says = Command::new(&path);
    says.args(["account", "--noise-multiplier", "1", "--sample-rate", "0.01"]);
    says.args(["--steps", "1000", "--delta", "1e-5"]);
    must(says, "the binary's first answer")?;
    Ok(path)
}

/// Size, symbols and the newest version of glibc that a binary asks for.
fn check_binary(path: &Path) -> Result<()> {
    let bytes = fs::read(path).with_context(|| format!("{} is missing", path.display()))?;
    let size = bytes.len() as u64;
    println!("== package: {} has {:.1} MB", path.display(), size as f64 / 1e6);
    if size >= LIMIT {
        bail!("the binary has {size} bytes, more than {LIMIT}");
    }
    let newest = newest_glibc(&bytes).context("the binary names no version of glibc")?;
    println!("== package: needs glibc {}.{}", newest.0, newest.1);
    if newest > GLIBC {
        bail!("the binary needs glibc {}.{}", newest.0, newest.1);
    }
    if needs(path, "libcuda")? {
        bail!("the binary is linked with CUDA; it has to load it at run time");
    }
    Ok(())
}

/// The largest `GLIBC_2.N` among the names of versions in a binary.
fn newest_glibc(bytes: &[u8]) -> Option<(u32, u32)> {
    let mark = b"GLIBC_";
    let mut newest = None;
    for start in 0..bytes.len().saturating_sub(mark.len()) {
        if &bytes[start..start + mark.len()] != mark {
            continue;
        }
        let rest = &bytes[start + mark.len()..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.');
        let text = std::str::from_utf8(&rest[..end.unwrap_or(0)]).unwrap_or_default();
        let mut parts = text.split('.').map(str::parse::<u32>);
        if let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) {
            newest = newest.max(Some((major, minor)));
        }
    }
    newest
}

/// Whether a binary asks the loader for a library (`readelf -d`).
fn needs(path: &Path, library: &str) -> Result<bool> {
    let output = Command::new("readelf").arg("-d").arg(path).output().context("readelf")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !text.contains("NEEDED") {
        bail!("readelf lists no libraries of {}", path.display());
    }
    Ok(text.lines().any(|line| line.contains("NEEDED") && line.contains(library)))
}

/// The binary with completions, man pages and licences, as it lies in an archive.
fn stage(binary: &Path, folder: &Path) -> Result<PathBuf> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder.join("completions"))?;
    fs::copy(binary, folder.join("dosimeter"))?;
    for (shell, name) in
        [("bash", "dosimeter.bash"), ("zsh", "_dosimeter"), ("fish", "dosimeter.fish")]
    {
        let output = Command::new(binary).args(["completions", shell]).output()?;
        if !output.status.success() || output.stdout.is_empty() {
            bail!("there are no completions for {shell}");
        }
        fs::write(folder.join("completions").join(name), output.stdout)?;
    }
    let mut manual = Command::new(binary);
    manual.args(["completions", "--man"]).arg(folder.join("man"));
    must(manual, "the man pages")?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"] {
        fs::copy(root().join(name), folder.join(name))?;
    }
    let font = root().join("crates/report/fonts/OFL.txt");
    fs::copy(font, folder.join("LICENSE-FONT-OFL"))?;
    Ok(folder.to_owned())
}

fn tarball(staged: &Path, out: &Path, version: &str) -> Result<()> {
    let name = format!("dosimeter-{version}-linux-x86_64");
    let archive = out.join(format!("{name}.tgz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]);
    tar.arg(format!("--transform=s,^\\.,{name},")).arg("-czf").arg(&archive);
    tar.arg("-C").arg(staged).arg(".");
    must(tar, "the archive")
}

/// The wheel for any Python from 3.10 on, checked by auditwheel and twine, and installed.
fn wheel(tools: &Tools, folder: &Path, out: &Path) -> Result<()> {
    let mut build = tools.command("maturin");
    build.args(["build", "--locked", "--profile", "dist", "--zig", "--target", TARGET]);
    build.args(["--compatibility", "manylinux_2_28", "--out"]).arg(out).current_dir(root());
    must(build, "the wheel")?;
    let wheel = newest(out, ".whl")?;
    let size = fs::metadata(&wheel)?.len();
    println!("== package: {} has {:.1} MB", wheel.display(), size as f64 / 1e6);
    let mut audit = tools.command("auditwheel");
    audit.arg("show").arg(&wheel);
    let lines = watch(audit)?.lines.join("\n");
    if !lines.contains("manylinux_2_28") && !lines.contains("manylinux_2_17") {
        bail!("auditwheel does not find the wheel fit for manylinux_2_28");
    }
    let mut check = tools.command("twine");
    check.args(["check", "--strict"]).arg(&wheel);
    must(check, "twine's check of the wheel")?;
    let _ = fs::remove_dir_all(folder);
    let mut install = tools.command("python");
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    install.arg("--target").arg(folder).arg(&wheel);
    let begun = Instant::now();
    must(install, "the installation of the wheel")?;
    let (seconds, size) = (begun.elapsed().as_secs_f64(), self::size(folder)?);
    println!("== package: installed in {seconds:.1} s, {:.1} MB", size as f64 / 1e6);
    if seconds >= INSTALL_SECONDS {
        bail!("the installation takes {seconds:.1} s, not less than {INSTALL_SECONDS}");
    }
    if size >= LIMIT {
        bail!("the installed wheel has {size} bytes, not less than {LIMIT}");
    }
    Ok(())
}

/// Bytes of everything in a folder.
fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        sum += if entry.file_type()?.is_dir() {
            size(&entry.path())?
        } else {
            entry.metadata()?.len()
        };
    }
    Ok(sum)
}

/// The source distribution; it has to hold everything that its lock file asks for.
fn sdist(tools: &Tools, folder: &Path, out: &Path) -> Result<()> {
    let mut build = tools.command("maturin");
    build.args(["sdist", "--out"]).arg(out).current_dir(root());
    must(build, "the source distribution")?;
    let archive = newest(out, ".tar.gz")?;
    let mut check = tools.command("twine");
    check.args(["check", "--strict"]).arg(&archive);
    must(check, "twine's check of the source distribution")?;
    let unpacked = folder.join("sdist");
    let _ = fs::remove_dir_all(&unpacked);
    fs::create_dir_all(&unpacked)?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(&archive).args(["--strip-components=1", "-C"]).arg(&unpacked);
    must(tar, "unpacking the source distribution")?;
    let lock = unpacked.join("Cargo.lock");
    let before = fs::read_to_string(&lock).context("the lock file of the source distribution")?;
    let mut cargo = crate::process::cargo(&["check", "-p", "python"]);
    cargo.current_dir(&unpacked).env("CARGO_TARGET_DIR", folder.join("sdist-target"));
    must(cargo, "the source distribution's own build")?;
    // Crates that only develop are not in it, so the lock file loses lines; it must not win any.
    let known: std::collections::BTreeSet<&str> = before.lines().collect();
    let after = fs::read_to_string(&lock)?;
    if let Some(line) = after.lines().find(|line| !known.contains(line)) {
        bail!("the source distribution is built with other versions: {line}");
    }
    Ok(())
}

/// The crates as crates.io would have them, each built from its own archive.
fn crates(out: &Path) -> Result<()> {
    let mut package = crate::process::cargo(&["package", "--locked", "--allow-dirty"]);
    let target = root().join("target/package/crates");
    package.args(CRATES.iter().flat_map(|name| ["-p".to_owned(), format!("dosimeter-{name}")]));
    package.arg("--target-dir").arg(&target);
    must(package, "the crates")?;
    let version = version()?;
    for name in CRATES {
        let archive = format!("dosimeter-{name}-{version}.crate");
        fs::copy(target.join("package").join(&archive), out.join(&archive))
            .with_context(|| format!("{archive} is missing"))?;
    }
    Ok(())
}

/// `SHA256SUMS` of everything beside it.
fn checksums(out: &Path) -> Result<()> {
    let mut names: Vec<String> = fs::read_dir(out)?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| name != "SHA256SUMS")
        .collect();
    names.sort();
    let output = Command::new("sha256sum").args(&names).current_dir(out).output()?;
    if !output.status.success() {
        bail!("sha256sum cannot read the packages");
    }
    Ok(fs::write(out.join("SHA256SUMS"), output.stdout)?)
}

/// The newest file of a folder with an ending.
fn newest(folder: &Path, ending: &str) -> Result<PathBuf> {
    let mut found: Vec<(std::time::SystemTime, PathBuf)> = fs::read_dir(folder)?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let named = entry.file_name().to_string_lossy().ends_with(ending);
            named.then(|| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))?
        })
        .collect();
    found.sort();
    Ok(found.pop().with_context(|| format!("no *{ending} in {}", folder.display()))?.1)
}

/// Runs a command that has to succeed.
fn must(command: Command, what: &str) -> Result<()> {
    if watch(command)?.success { Ok(()) } else { bail!("{what} failed") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_glibc_are_compared_as_numbers() {
        let bytes = b"\0GLIBC_2.9\0GLIBC_2.28\0GLIBC_2.3.4\0GLIBC_PRIVATE\0";
        assert_eq!(newest_glibc(bytes), Some((2, 28)));
        assert_eq!(newest_glibc(b"nothing"), None);
    }
}
