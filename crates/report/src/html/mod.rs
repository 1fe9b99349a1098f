//! The page: one file, no script, nothing from elsewhere.
//!
//! Every number of a claim stands in a `data` element whose `value` is the number itself, not
//! rounded; all of them are in the JSON at the end of the page.

mod escape;
pub(crate) mod figure;
mod parts;
mod sections;
mod training;
mod verdict;

use crate::words::trained;
use crate::{Report, cover};
use escape::{escape, json_in_script};

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub fn html(report: &Report) -> String {
    let title = match (&report.cover.title, &report.run) {
        (Some(title), _) => title.clone(),
        (None, Some(run)) => format!("What this DP-SGD run leaks: {}", trained(run)),
        (None, None) => "What these membership scores show".to_owned(),
    };
    let sections = sections::all(report);
    let json = serde_json::to_string(report).unwrap_or_else(|_| "{}".into());
    let mut page = String::with_capacity(256 * 1024);
    page.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n");
    page.push_str(concat!(
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n",
        "<meta name=\"color-scheme\" content=\"light dark\"/>\n",
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ",
        "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\"/>\n",
    ));
    page.push_str(&format!(
        "<meta name=\"generator\" content=\"dosimeter {}\"/>\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n",
        escape(&report.version),
        escape(&title)
    ));
    page.push_str(&header(report));
    page.push_str("<nav class=\"page\" aria-label=\"Sections\">\n<ul>\n");
    for section in &sections {
        page.push_str(&format!(
            "<li><a href=\"#{}\">{}</a></li>\n",
            section.id,
            escape(&section.short)
        ));
    }
    page.push_str("</ul>\n</nav>\n<main class=\"page\">\n");
    page.push_str(&verdict::verdict(report));
    for section in &sections {
        page.push_str(&section.markup);
    }
    page.push_str(&format!(
        "</main>\n<footer class=\"page\">\n<p>Made by dosimeter {}. Upper bounds are rounded up, \
         lower bounds down; the unrounded numbers are in this file, in the element with the id \
         <code>dosimeter</code>.</p>\n</footer>\n",
        escape(&report.version)
    ));
    page.push_str("<script type=\"application/json\" id=\"dosimeter\">");
    page.push_str(&json_in_script(&json));
    page.push_str("</script>\n</body>\n</html>\n");
    page
}

/// The sign of the house is a gauge.
fn header(report: &Report) -> String {
    let line = match &report.run {
        Some(run) => format!("DP-SGD, {}", trained(run)),
        None => "Membership scores without a described run".to_owned(),
    };
    let kind = if report.public { "Privacy report, public edition" } else { "Privacy report" };
    let mut lines = vec![line];
    let heading = report.cover.title.as_deref().unwrap_or(kind);
    let kind = (heading != kind).then(|| kind.to_owned());
    let under: Vec<String> = kind.into_iter().chain(cover::line(&report.cover)).collect();
    if !under.is_empty() {
        lines.insert(0, under.join(", "));
    }
    let lead: String =
        lines.iter().map(|line| format!("<p class=\"lead\">{}</p>\n", escape(line))).collect();
    format!(
        "<header class=\"page\">\n<p class=\"brand\"><svg viewBox=\"0 0 24 24\" \
         aria-hidden=\"true\" fill=\"none\" stroke-width=\"2.4\" stroke-linecap=\"round\">\
         <path class=\"ring\" d=\"M4.2 18a9.5 9.5 0 1 1 15.6 0\"/>\
         <path class=\"arc\" d=\"M4.2 18a9.5 9.5 0 0 1 5-14.6\"/>\
         <path class=\"needle\" d=\"M12 13.5 8.6 7.6\"/></svg>Dosimeter</p>\n\
         <h1>{}</h1>\n{lead}</header>\n",
        escape(heading)
    )
}
