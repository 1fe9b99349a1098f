//! Which document `report` writes, and its first page.

use crate::console::Console;
use crate::failure::Failure;
use clap::{Args, ValueEnum};
use report::Report;
use std::path::{Path, PathBuf};

/// A document that a report can become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// One self-contained page (.html)
    Html,
    /// Words and tables as Markdown (.md)
    Md,
    /// Tagged PDF/UA with figures, and the numbers attached (.pdf)
    Pdf,
    /// A draft entry for the OpenDP/NIST registry of deployments (.yaml)
    Registry,
    /// A Hugging Face model card: metadata and a paragraph (.md)
    Card,
}

impl ReportFormat {
    fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Md => "md",
            Self::Pdf => "pdf",
            Self::Registry => "registry",
            Self::Card => "card",
        }
    }

    /// The endings of files that hold it; the first is the usual one.
    fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Html => &["html", "htm"],
            Self::Md | Self::Card => &["md", "markdown"],
            Self::Pdf => &["pdf"],
            Self::Registry => &["yaml", "yml"],
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct DocumentArgs {
    /// The title on the first page: what the report is about
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    pub(super) title: Option<String>,
    /// The person or team that answers for the training
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub(super) owner: Option<String>,
    /// The date on the first page; without it the report has none, and the same inputs give the
    /// same bytes
    #[arg(long, value_name = "YYYY-MM-DD", help_heading = "Output")]
    pub(super) date: Option<String>,
    /// The kind of document [default: what the ending of --out says, else html]
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    format: Option<ReportFormat>,
    /// Where it goes; `-` is stdout [default: dosimeter-report.html, .md, .pdf or .yaml]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) out: Option<PathBuf>,
}

impl DocumentArgs {
    /// The format and the file.
    ///
    /// # Errors
    /// An ending that no format has, or that another format has.
    pub(super) fn settled(&self) -> Result<(ReportFormat, PathBuf), Failure> {
        let Some(out) = self.out.clone() else {
            let format = self.format.unwrap_or(ReportFormat::Html);
            return Ok((format, format!("dosimeter-report.{}", format.endings()[0]).into()));
        };
        if out.as_os_str() == "-" || out.extension().is_none() {
            return match self.format {
                Some(format) => Ok((format, out)),
                None if out.as_os_str() == "-" => Ok((ReportFormat::Html, out)),
                None => Err(unknown(&out)),
            };
        }
        let ending = out.extension().map(|text| text.to_string_lossy().to_ascii_lowercase());
        let ending = ending.unwrap_or_default();
        let holds = |format: ReportFormat| format.endings().contains(&ending.as_str());
        match self.format {
            Some(format) if holds(format) => Ok((format, out)),
            Some(format) => {
                let good = format.endings()[0];
                Err(Failure::bad_input(format!(
                    "{} does not end in .{good}, and --format is {}",
                    out.display(),
                    format.name()
                ))
                .hint(format!(
                    "write {}, or choose another --format",
                    out.with_extension(good).display()
                )))
            }
            None => {
                [ReportFormat::Html, ReportFormat::Md, ReportFormat::Pdf, ReportFormat::Registry]
                    .into_iter()
                    .find(|format| holds(*format))
                    .map(|format| (format, out.clone()))
                    .ok_or_else(|| unknown(&out))
            }
        }
    }

    /// The flags, for the command that makes the same report.
    pub(super) fn flags(&self) -> [(&'static str, Option<String>); 5] {
        [
            ("title", self.title.clone()),
            ("owner", self.owner.clone()),
            ("date", self.date.clone()),
            ("format", self.format.map(|format| format.name().into())),
            ("out", self.out.as_ref().map(|path| path.display().to_string())),
        ]
    }
}

fn unknown(out: &Path) -> Failure {
    let what = match out.extension() {
        Some(ending) => format!("no report ends in .{}", ending.to_string_lossy()),
        None => format!("{} has no ending that says what to write", out.display()),
    };
    Failure::bad_input(what).hint("end it in .html, .md, .pdf or .yaml, or say which with --format")
}

/// The document's bytes.
///
/// # Errors
/// A report that the format cannot hold.
pub(super) fn document(
    report: &Report,
    format: ReportFormat,
    console: &mut Console,
) -> Result<Vec<u8>, Failure> {
    let refused = |error: report::NotAnswered| {
        let hint = match error {
            report::NotAnswered::NoTitle => "give --title",
            report::NotAnswered::NoOwner => "give --owner",
            report::NotAnswered::NoDate => "give --date",
            _ => "describe a run that `dosimeter account` gives a proven epsilon for",
        };
        Failure::bad_input(error.to_string()).hint(hint)
    };
    match format {
        ReportFormat::Html => Ok(report::html(report).into_bytes()),
        ReportFormat::Md => Ok(report::markdown(report).into_bytes()),
        ReportFormat::Card => report::card(report).map(String::into_bytes).map_err(refused),
        ReportFormat::Registry => {
            let entry = report::registry(report).map_err(refused)?;
            console.note("fill in the lines that say TO BE FILLED IN before you hand it over");
            Ok(entry.into_bytes())
        }
        ReportFormat::Pdf => pdf(report),
    }
}

#[cfg(feature = "pdf")]
fn pdf(report: &Report) -> Result<Vec<u8>, Failure> {
    report::pdf(report).map_err(|error| Failure::new(crate::exit::BUG, error.to_string()))
}

#[cfg(not(feature = "pdf"))]
fn pdf(_: &Report) -> Result<Vec<u8>, Failure> {
    Err(super::absent::absent("PDF output", "pdf"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(
        out: Option<&str>,
        format: Option<ReportFormat>,
    ) -> Result<(&'static str, String), String> {
        let args =
            DocumentArgs { title: None, owner: None, date: None, format, out: out.map(Into::into) };
        args.settled()
            .map(|(format, out)| (format.name(), out.display().to_string()))
            .map_err(|failure| failure.to_string())
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
    }
}
