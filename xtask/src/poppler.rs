//! The programs that read PDF files in the tests of the report.

use crate::process::answers;
use std::process::Command;

/// Installs Debian's `poppler-utils` where `pdftotext` is missing. Where that cannot be done the
/// tests say what they skip.
pub fn prepare() {
    let found = || {
        let mut command = Command::new("pdftotext");
        command.arg("-v");
        answers(command)
    };
    if found() {
        return;
    }
    println!("== PDF: no pdftotext here; installing Debian's poppler-utils");
    for arguments in [&["update", "-qq"][..], &["install", "-y", "-qq", "poppler-utils"][..]] {
        let mut install = Command::new("apt-get");
        install.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        if !answers(install) {
            break;
        }
    }
    if !found() {
        println!("== PDF: poppler-utils cannot be installed; what it checks is skipped");
    }
}
