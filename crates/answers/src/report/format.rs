//! Which document a report becomes, and where it goes.

use crate::Refusal;
use clap::builder::PossibleValue;
use report::Report;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A document that a report can become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportFormat {
    Html,
    Md,
    Pdf,
    Registry,
    Card,
}

impl ReportFormat {
    /// Every format with its name, the endings of files that hold it (the first is the usual one),
    /// and what it is.
    pub const ALL: &[(Self, &str, &[&str], &str)] = &[
        (Self::Html, "html", &["html", "htm"], "One self-contained page (.html)"),
        (Self::Md, "md", &["md", "markdown"], "Words and tables as Markdown (.md)"),
        (Self::Pdf, "pdf", &["pdf"], "Tagged PDF/UA with figures, and the numbers attached (.pdf)"),
        (
            Self::Registry,
            "registry",
            &["yaml", "yml"],
            "A draft entry for the OpenDP/NIST registry of deployments (.yaml)",
        ),
        (
            Self::Card,
            "card",
            &["md", "markdown"],
            "A Hugging Face model card: metadata and a paragraph (.md)",
        ),
    ];

    /// The names with what they are, for people who choose one.
    pub(super) fn words() -> Vec<PossibleValue> {
        Self::ALL.iter().map(|(_, name, _, what)| PossibleValue::new(*name).help(*what)).collect()
    }

    fn entry(self) -> &'static (Self, &'static str, &'static [&'static str], &'static str) {
        // The table has every format.
        Self::ALL.iter().find(|(format, ..)| *format == self).unwrap_or(&Self::ALL[0])
    }

    pub(super) fn name(self) -> &'static str {
        self.entry().1
    }

    fn endings(self) -> &'static [&'static str] {
        self.entry().2
    }

    /// The format and the file of what was asked for.
    ///
    /// # Errors
    /// An ending that no format has, or that another format has.
    pub(super) fn settled(
        format: Option<Self>,
        out: Option<&Path>,
    ) -> Result<(Self, PathBuf), Refusal> {
        let Some(out) = out.map(Path::to_owned) else {
            let format = format.unwrap_or(Self::Html);
            return Ok((format, format!("dosimeter-report.{}", format.endings()[0]).into()));
        };
        if out.as_os_str() == "-" || out.extension().is_none() {
            return match format {
                Some(format) => Ok((format, out)),
                None if out.as_os_str() == "-" => Ok((Self::Html, out)),
                None => Err(unknown(&out)),
            };
        }
        let ending = out.extension().map(|text| text.to_string_lossy().to_ascii_lowercase());
        let ending = ending.unwrap_or_default();
        let holds = |format: Self| format.endings().contains(&ending.as_str());
        match format {
            Some(format) if holds(format) => Ok((format, out)),
            Some(format) => {
                let good = format.endings()[0];
                Err(Refusal::bad_input(format!(
                    "{} does not end in .{good}, and --format is {}",
                    out.display(),
                    format.name()
                ))
                .hint(format!(
                    "write {}, or choose another --format",
                    out.with_extension(good).display()
                )))
            }
            // A card is never meant by an ending alone: Markdown comes before it.
            None => Self::ALL
                .iter()
                .map(|(format, ..)| *format)
                .find(|format| holds(*format))
                .map(|format| (format, out.clone()))
                .ok_or_else(|| unknown(&out)),
        }
    }

    /// The document's bytes.
    ///
    /// # Errors
    /// A report that the format cannot hold.
    pub(super) fn bytes(self, report: &Report) -> Result<Vec<u8>, Refusal> {
        let refused = |error: report::NotAnswered| {
            let hint = match error {
                report::NotAnswered::NoTitle => "give --title",
                report::NotAnswered::NoOwner => "give --owner",
                report::NotAnswered::NoDate => "give --date",
                _ => "describe a run that `dosimeter account` gives a proven epsilon for",
            };
            Refusal::bad_input(error.to_string()).hint(hint)
        };
        match self {
            Self::Html => Ok(report::html(report).into_bytes()),
            Self::Md => Ok(report::markdown(report).into_bytes()),
            Self::Card => report::card(report).map(String::into_bytes).map_err(refused),
            Self::Registry => report::registry(report).map(String::into_bytes).map_err(refused),
            Self::Pdf => pdf(report),
        }
    }
}

fn unknown(out: &Path) -> Refusal {
    let extensions = "use the extension .html, .md, .pdf or .yaml";
    match out.extension() {
        // --format would not help: it has to fit the extension.
        Some(ending) => Refusal::bad_input(format!(
            "no kind of report has the extension .{}",
            ending.to_string_lossy()
        ))
        .hint(extensions),
        None => Refusal::bad_input(format!(
            "{} has no extension, so the format is not known",
            out.display()
        ))
        .hint(format!("{extensions}, or give --format")),
    }
}

#[cfg(feature = "pdf")]
fn pdf(report: &Report) -> Result<Vec<u8>, Refusal> {
    report::pdf(report).map_err(|error| Refusal::new(crate::Kind::Bug, error.to_string()))
}

#[cfg(not(feature = "pdf"))]
fn pdf(_: &Report) -> Result<Vec<u8>, Refusal> {
    Err(Refusal::absent("PDF output", "pdf"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(
        out: Option<&str>,
        format: Option<ReportFormat>,
    ) -> Result<(&'static str, String), String> {
        ReportFormat::settled(format, out.map(Path::new))
            .map(|(format, out)| (format.name(), out.display().to_string()))
            .map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn the_ending_says_the_format() {
        for (out, format) in [
            ("r.html", "html"),
            ("r.HTM", "html"),
            ("a/r.md", "md"),
            ("r.pdf", "pdf"),
            ("r.yml", "registry"),
        ] {
            assert_eq!(settled(Some(out), None), Ok((format, out.to_owned())));
        }
        assert_eq!(settled(None, None), Ok(("html", "dosimeter-report.html".into())));
        assert_eq!(
            settled(None, Some(ReportFormat::Registry)),
            Ok(("registry", "dosimeter-report.yaml".into()))
        );
        assert_eq!(settled(Some("-"), None), Ok(("html", "-".into())));
        assert_eq!(settled(Some("c.md"), Some(ReportFormat::Card)), Ok(("card", "c.md".into())));
        assert_eq!(settled(Some("plain"), Some(ReportFormat::Pdf)), Ok(("pdf", "plain".into())));
    }

    #[test]
    fn a_wrong_ending_is_an_error() {
        for (out, format) in [
            ("r.txt", None),
            ("r.docx", None),
            ("plain", None),
            ("r.pdf", Some(ReportFormat::Html)),
            ("r.html", Some(ReportFormat::Card)),
        ] {
            assert!(settled(Some(out), format).is_err(), "{out}");
        }
        // A format helps where there is no extension, and only there.
        let hint = |out: &str| {
            ReportFormat::settled(None, Some(Path::new(out))).unwrap_err().hint.unwrap()
        };
        assert!(!hint("r.docx").contains("--format") && hint("plain").contains("--format"));
    }
}
