//! The Debian package: the program, completions, man pages, licences.

use super::{must, size};
use anyhow::{Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Builds `dosimeter_VERSION_amd64.deb` from what was staged, and lists it.
pub(super) fn package(staged: &Path, folder: &Path, out: &Path, version: &str) -> Result<()> {
    let _ = fs::remove_dir_all(folder);
    let share = folder.join("usr/share");
    let doc = share.join("doc/dosimeter");
    for path in [
        folder.join("DEBIAN"),
        folder.join("usr/bin"),
        share.join("bash-completion/completions"),
        share.join("zsh/vendor-completions"),
        share.join("fish/vendor_completions.d"),
        share.join("man/man1"),
        doc.clone(),
    ] {
        fs::create_dir_all(path)?;
    }
    for (from, to) in [
        ("dosimeter", "usr/bin/dosimeter"),
        ("completions/dosimeter.bash", "usr/share/bash-completion/completions/dosimeter"),
        ("completions/_dosimeter", "usr/share/zsh/vendor-completions/_dosimeter"),
        ("completions/dosimeter.fish", "usr/share/fish/vendor_completions.d/dosimeter.fish"),
        ("CHANGELOG.md", "usr/share/doc/dosimeter/changelog"),
    ] {
        fs::copy(staged.join(from), folder.join(to))?;
    }
    for entry in fs::read_dir(staged.join("man"))? {
        let path = entry?.path();
        fs::copy(&path, share.join("man/man1").join(path.file_name().unwrap_or_default()))?;
    }
    let mut gzip = Command::new("gzip");
    gzip.args(["-9nr"]).arg(share.join("man")).arg(doc.join("changelog"));
    must(gzip, "gzip")?;
    let mut copyright = String::from(
        "Dosimeter is under the MIT licence or the Apache licence 2.0, at your choice.\n\
         The built-in font Arimo is under the SIL Open Font License 1.1.\n",
    );
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "LICENSE-FONT-OFL"] {
        copyright.push_str(&format!("\n== {name}\n\n{}", fs::read_to_string(staged.join(name))?));
    }
    fs::write(doc.join("copyright"), copyright)?;
    let kilobytes = size(&folder.join("usr"))?.div_ceil(1024);
    fs::write(
        folder.join("DEBIAN/control"),
        format!(
            "Package: dosimeter\nVersion: {version}\nArchitecture: amd64\n\
             Maintainer: The Dosimeter developers <maintainers@dosimeter.invalid>\n\
             Installed-Size: {kilobytes}\nDepends: libc6 (>= 2.28), libgcc-s1\n\
             Section: science\nPriority: optional\n\
             Description: measures what a DP-SGD training run really leaks\n \
             Epsilon at delta with certified ends, what an attacker can do, calibration of\n \
             noise, audits from membership scores, reports. Loads NVIDIA's CUDA at run time\n \
             where it is installed.\n"
        ),
    )?;
    let archive = out.join(format!("dosimeter_{version}_amd64.deb"));
    let mut build = Command::new("dpkg-deb");
    build.args(["--build", "--root-owner-group"]).arg(folder).arg(&archive);
    must(build, "dpkg-deb (Debian's package dpkg)")?;
    let listed = Command::new("dpkg-deb").arg("--contents").arg(&archive).output()?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    for path in ["usr/bin/dosimeter", "man1/dosimeter.1.gz", "completions/dosimeter"] {
        if !text.contains(path) {
            bail!("the Debian package lacks {path}");
        }
    }
    Ok(())
}
