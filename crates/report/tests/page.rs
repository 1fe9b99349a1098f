//! The page is well-formed, self-contained, accessible, small, and carries its numbers.

mod support;

use report::{Provenance, Report, html};
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::Value;
use std::collections::HashSet;

/// The page as XML, which is stricter than HTML.
fn parsed(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).expect("the page is well-formed")
}

fn elements<'a>(
    document: &'a Document<'a>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'a>> {
    document.descendants().filter(move |node| node.tag_name().name() == name)
}

fn embedded(document: &Document<'_>) -> Value {
    let script: Vec<_> = elements(document, "script").collect();
    assert_eq!(script.len(), 1, "no script but the data");
    assert_eq!(script[0].attribute("type"), Some("application/json"));
    assert_eq!(script[0].attribute("id"), Some("dosimeter"));
    serde_json::from_str(script[0].text().unwrap()).unwrap()
}

fn numbers(value: &Value, all: &mut HashSet<u64>) {
    match value {
        Value::Number(number) => {
            all.insert(number.as_f64().unwrap().to_bits());
        }
        Value::Array(items) => items.iter().for_each(|item| numbers(item, all)),
        Value::Object(entries) => entries.values().for_each(|entry| numbers(entry, all)),
        _ => {}
    }
}

#[test]
fn ids_are_unique_and_every_reference_has_its_target() {
    let page = html(&support::full());
    let document = parsed(&page);
    let mut ids = HashSet::new();
    for node in document.descendants() {
        if let Some(id) = node.attribute("id") {
            assert!(ids.insert(id.to_owned()), "the id {id} occurs twice");
        }
    }
    for node in document.descendants() {
        let named = node.attribute("aria-labelledby").into_iter();
        let linked = node
            .attribute("href")
            .filter(|link| !link.starts_with("data:text/csv"))
            .map(|link| link.strip_prefix('#').expect("a local link"));
        for id in named.flat_map(str::split_whitespace).chain(linked) {
            assert!(ids.contains(id), "nothing has the id {id}");
        }
    }
}

#[test]
fn nothing_comes_from_elsewhere() {
    let page = html(&support::full());
    let document = parsed(&page);
    for node in document.descendants().filter(Node::is_element) {
        for attribute in node.attributes() {
            assert!(!attribute.name().starts_with("on"), "a script hides in {attribute:?}");
            assert_ne!(attribute.name(), "src");
            assert!(!attribute.value().contains("http"), "{attribute:?}");
        }
    }
    let without_namespaces = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!without_namespaces.contains("http://") && !page.contains("https://"));
    assert!(!page.contains("url(http") && !page.contains("@import"));
}

#[test]
fn headings_go_down_one_level_at_a_time() {
    let page = html(&support::full());
    let document = parsed(&page);
    let levels: Vec<u32> = document
        .descendants()
        .filter_map(|node| node.tag_name().name().strip_prefix('h')?.parse().ok())
        .collect();
    assert_eq!(levels.first(), Some(&1));
    assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1);
    assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{levels:?}");
    for section in elements(&document, "section") {
        assert!(section.attribute("aria-labelledby").is_some());
    }
}

#[test]
fn every_figure_has_its_finding_its_caption_and_its_table() {
    let report = support::full();
    let page = html(&report);
    let document = parsed(&page);
    let shown: Vec<_> = elements(&document, "figure").collect();
    assert_eq!(shown.len(), report.figures.len());
    for figure in shown {
        let within = |name: &str| -> Vec<Node<'_, '_>> {
            figure.descendants().filter(|node| node.tag_name().name() == name).collect()
        };
        assert_eq!(within("h3").len(), 1);
        assert_eq!(within("figcaption").len(), 1);
        assert_eq!(figure.last_element_child().unwrap().tag_name().name(), "figcaption");
        assert!(!within("table").is_empty(), "no table behind {:?}", figure.attribute("id"));
        let drawings = within("svg");
        assert_eq!(drawings.len(), 2, "a wide and a narrow drawing");
        for drawing in drawings {
            let child = |name: &str| {
                drawing
                    .children()
                    .find(|node| node.tag_name().name() == name)
                    .and_then(|n| n.text())
            };
            assert!(child("title").is_some_and(|text| !text.is_empty()));
            assert!(child("desc").is_some_and(|text| !text.is_empty()));
        }
    }
}

#[test]
fn every_number_of_the_page_is_in_its_json() {
    let page = html(&support::full());
    let document = parsed(&page);
    let json = embedded(&document);
    assert_eq!(json["schema"], "dosimeter.report/1");
    let mut known = HashSet::new();
    numbers(&json, &mut known);
    let mut shown = 0;
    for node in elements(&document, "data") {
        let value: f64 = node.attribute("value").unwrap().parse().unwrap();
        assert!(known.contains(&value.to_bits()), "{value} is shown but not in the JSON");
        shown += 1;
    }
    // Three readings, six quantities of three lenses, and the tables.
    assert!(shown >= 3 + 18, "only {shown} numbers");
}

/// The numbers in the text of a table behind a figure.
fn read(text: &str) -> Option<f64> {
    let text = text.trim();
    match text.strip_suffix('%') {
        Some(share) => share.trim().parse::<f64>().ok().map(|share| share / 100.0),
        None => text.parse().ok(),
    }
}

#[test]
fn every_number_of_the_tables_is_one_of_the_json_rounded() {
    let page = html(&support::full());
    let document = parsed(&page);
    let mut known = HashSet::new();
    numbers(&embedded(&document), &mut known);
    let known: Vec<f64> = known.into_iter().map(f64::from_bits).collect();
    let mut shown = 0;
    for cell in elements(&document, "td").filter(|cell| cell.attribute("class") == Some("n")) {
        // Numbers with their exact value are held to it above.
        let behind = cell.ancestors().any(|node| node.tag_name().name() == "details");
        if !behind || cell.descendants().any(|node| node.tag_name().name() == "data") {
            continue;
        }
        let Some(value) = cell.text().and_then(read) else { continue };
        let near = |number: &f64| (number - value).abs() <= 5.1e-3 * number.abs();
        assert!(known.iter().any(near), "{value} is in a table and not in the JSON");
        shown += 1;
    }
    assert!(shown > 15, "only {shown} numbers");
}

#[test]
fn every_figure_can_be_taken_as_csv() {
    let page = html(&support::full());
    let document = parsed(&page);
    let links: Vec<_> =
        elements(&document, "a").filter(|a| a.attribute("download").is_some()).collect();
    assert_eq!(links.len(), support::full().figures.len());
    for link in links {
        let name = link.attribute("download").unwrap();
        assert!(name.ends_with(".csv"), "{name}");
        let address = link.attribute("href").unwrap();
        let encoded = address.strip_prefix("data:text/csv;charset=utf-8,").unwrap();
        assert!(encoded.contains("%0A"), "{name} has rows");
        assert!(!encoded.contains(['<', '"', ' ', '#', '&']), "{name} is encoded");
    }
}

#[test]
fn numbers_are_rounded_to_their_side() {
    let page = html(&support::full());
    let document = parsed(&page);
    for node in elements(&document, "data") {
        let text = node.text().unwrap();
        let value: f64 = node.attribute("value").unwrap().parse().unwrap();
        let shown = match text.strip_suffix('%').map(str::trim_end) {
            Some(share) => share.parse::<f64>().unwrap() / 100.0,
            None => text.parse().unwrap(),
        };
        let before = node.prev_sibling().and_then(|node| node.text()).unwrap_or_default();
        let slack = 1e-12 * value.abs();
        if before.trim_end().ends_with('\u{2264}') {
            assert!(shown >= value - slack, "{text} quotes {value} from below");
        } else if before.trim_end().ends_with('\u{2265}') {
            assert!(shown <= value + slack, "{text} quotes {value} from above");
        }
        assert!((shown - value).abs() <= 0.011 * value.abs(), "{text} is not {value}");
    }
}

#[test]
fn what_is_computed_from_records_is_marked() {
    let page = html(&support::full());
    let document = parsed(&page);
    for id in [
        "audit-heading",
        "scores-heading",
        "health-heading",
        "search-heading",
        "figure-ladder-heading",
        "figure-scores-heading",
    ] {
        let node = document.descendants().find(|node| node.attribute("id") == Some(id)).unwrap();
        let tag = node.descendants().find(|node| node.attribute("class") == Some("tag"));
        assert_eq!(tag.and_then(|tag| tag.text()), Some("not private"), "{id}");
    }
    let profile = document
        .descendants()
        .find(|node| node.attribute("id") == Some("figure-profile-heading"))
        .unwrap();
    assert!(profile.descendants().all(|node| node.attribute("class") != Some("tag")));
}

#[test]
fn the_page_stays_small() {
    let page = html(&support::full());
    assert!(page.len() < 400_000, "{} bytes", page.len());
    // What every page carries, whatever its figures: style, frame, words.
    let bare =
        Report::new("0.0.0", 1e-5, vocabulary::Verdict::nothing("why"), Provenance::default());
    assert!(html(&bare).len() < 20_000);
}

#[test]
fn a_hostile_name_stays_text() {
    let mut report = support::full();
    report.verdict.headline = "</script><script>alert(1)</script>".into();
    report.provenance.inputs[0].name = "\"><img src=x onerror=alert(1)>.csv\u{0}".into();
    report.changes[0].name = "<b>&amp;".into();
    let page = html(&report);
    let document = parsed(&page);
    let json = embedded(&document);
    assert_eq!(json["verdict"]["headline"], report.verdict.headline);
    assert_eq!(elements(&document, "img").count(), 0);
    assert_eq!(elements(&document, "b").count(), 0);
}

#[test]
fn the_same_report_gives_the_same_bytes_and_survives_json() {
    let report = support::full();
    let text = serde_json::to_string(&report).unwrap();
    let back: Report = serde_json::from_str(&text).unwrap();
    assert_eq!(html(&report), html(&back));
    assert_eq!(report::markdown(&report), report::markdown(&back));
}

/// Title, owner and date are what a person sees first, and the worst case stands beside a bound that is not exact.
#[test]
fn the_page_opens_with_who_answers_for_it() {
    let mut report = support::full();
    report.cover.title = Some("Notes & letters".into());
    report.cover.owner = Some("Team B".into());
    report.cover.date = Some("2026-11-18".into());
    report.verdict.claim.as_mut().unwrap().at_least = Some(1.2345);
    let page = html(&report);
    let document = parsed(&page);
    let heading: Vec<_> = elements(&document, "h1").filter_map(|node| node.text()).collect();
    assert_eq!(heading, ["Notes & letters"]);
    let title: Vec<_> = elements(&document, "title").filter_map(|node| node.text()).collect();
    assert_eq!(title[0], "Notes & letters");
    assert!(page.contains("Privacy report, Team B, 2026-11-18"));
    assert!(page.contains("the worst case is \u{2265} <data value=\"1.2345\">1.234</data>"));
    let mut account = support::account();
    account.claims[0].at_least = Some(1.2345);
    let statement = report::statement(&account, 1e-5).join(" ");
    assert!(
        statement.contains("for the worst data sets epsilon is at least 1.234."),
        "{statement}"
    );
    let plain = html(&support::full());
    assert!(plain.contains("<h1>Privacy report") && !plain.contains("the worst case is"));
}
