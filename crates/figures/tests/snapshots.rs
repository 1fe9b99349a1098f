//! The drawings of some figures, byte for byte. After a wanted change, look at the gallery
//! (`cargo run --release -p probes --example gallery -- FOLDER`) before accepting it.

mod gallery;

use figures::{Options, Theme, to_csv, to_svg};
use gallery::all;

fn named(name: &str) -> vocabulary::Figure {
    let found = all().into_iter().find(|(other, _)| *other == name);
    found.expect("the gallery has it").1
}

#[test]
fn tradeoff_in_auto_theme() {
    insta::assert_snapshot!(to_svg(&named("tradeoff"), &Options::default()));
}

#[test]
fn steps_for_paper() {
    insta::assert_snapshot!(to_svg(&named("steps"), &Options::paper()));
}

#[test]
fn ladder_in_dark() {
    insta::assert_snapshot!(to_svg(&named("ladder"), &Options::default().theme(Theme::Dark)));
}

#[test]
fn calibration_in_light() {
    let options = Options { width: 480.0, ..Options::default().theme(Theme::Light) };
    insta::assert_snapshot!(to_svg(&named("calibration"), &options));
}

#[test]
fn ladder_as_table() {
    insta::assert_snapshot!(to_csv(&named("ladder")));
}

#[test]
fn the_whole_gallery_is_well_formed_and_stands_alone() {
    for (name, figure) in all() {
        let svg = to_svg(&figure, &Options::default());
        let document = roxmltree::Document::parse(&svg).expect(name);
        let root = document.root_element();
        assert_eq!(root.attribute("role"), Some("img"), "{name}");
        let labelled: Vec<&str> = root.attribute("aria-labelledby").unwrap().split(' ').collect();
        for id in labelled {
            let target = document.descendants().find(|node| node.attribute("id") == Some(id));
            assert!(target.is_some_and(|node| node.text().is_some()), "{name}: {id}");
        }
        for node in document.descendants() {
            assert_ne!(node.tag_name().name(), "script", "{name}");
            assert!(node.attributes().all(|a| !a.name().ends_with("href")), "{name}");
        }
        let without_namespace = svg.replace("http://www.w3.org/2000/svg", "");
        assert!(!without_namespace.contains("://") && !svg.contains("@import"), "{name}");
        assert!(svg.len() < 60_000, "{name}: {} bytes", svg.len());
    }
}

#[test]
fn figures_in_one_page_do_not_share_ids() {
    let ids: std::collections::BTreeSet<String> = all()
        .iter()
        .map(|(name, figure)| {
            let svg = to_svg(figure, &Options::default());
            let document = roxmltree::Document::parse(&svg).expect(name);
            document.root_element().attribute("id").unwrap().to_string()
        })
        .collect();
    assert_eq!(ids.len(), all().len());
}

#[test]
fn nothing_is_written_outside_of_the_canvas() {
    // Labels end inside of the drawing for a face with the widths of Helvetica.
    for (name, figure) in all() {
        for width in [360.0, 640.0, 960.0] {
            let options = Options { width, ..Options::default() };
            let svg = to_svg(&figure, &options);
            let document = roxmltree::Document::parse(&svg).expect(name);
            for node in document.descendants().filter(|node| node.has_tag_name("text")) {
                let Some(x) = node.attribute("x").and_then(|x| x.parse::<f64>().ok()) else {
                    continue;
                };
                assert!((0.0..=width).contains(&x), "{name} at {width}: {:?}", node.text());
            }
        }
    }
}
