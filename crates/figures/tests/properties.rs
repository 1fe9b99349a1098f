//! No figure makes the drawing fail, and every drawing is a well-formed document of finite
//! numbers.

use figures::{Options, Theme, to_csv, to_svg};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use vocabulary::Figure;
use vocabulary::figure::{
    Axis, Bar, ColourScale, Heat, Hue, Labels, Mark, Measurement, Orientation, Point, Ramp, Range,
    Rung, Scale, Series, Stroke, TickFormat,
};

/// Usual numbers and every kind of unusual one.
fn number() -> BoxedStrategy<f64> {
    prop_oneof![
        4 => -10.0..10.0f64,
        4 => (-12.0..6.0f64).prop_map(|power| 10f64.powf(power)),
        2 => any::<f64>(),
        1 => prop::sample::select(vec![
            0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN,
            f64::MIN_POSITIVE, 5e-324, 1e300, -1e300,
        ]),
    ]
    .boxed()
}

fn words() -> BoxedStrategy<String> {
    prop_oneof![
        3 => "[a-z ]{0,20}",
        1 => "\\PC{0,40}",
        1 => "[<>&\"'\u{0}-\u{1f}\u{fffe}\u{e000}]{0,12}",
        1 => "[a-z]{100,300}",
    ]
    .boxed()
}

fn point() -> impl Strategy<Value = Point> {
    (number(), number()).prop_map(Point::from)
}

fn range() -> impl Strategy<Value = Range> {
    (number(), number()).prop_map(|(lower, upper)| Range { lower, upper })
}

fn orientation() -> impl Strategy<Value = Orientation> {
    prop::sample::select(vec![Orientation::Horizontal, Orientation::Vertical])
}

fn heat() -> impl Strategy<Value = Heat> {
    let ramp =
        prop_oneof![Just(Ramp::Sequential), number().prop_map(|centre| Ramp::Diverging { centre })];
    let colours = (words(), ramp, any::<bool>(), option::of(range()))
        .prop_map(|(label, ramp, log, domain)| ColourScale { label, ramp, log, domain });
    (
        vec(number(), 0..7),
        vec(number(), 0..7),
        vec(vec(option::of(number()), 0..7), 0..7),
        colours,
        vec(number(), 0..3),
        any::<bool>(),
    )
        .prop_map(|(x_edges, y_edges, values, colours, contours, print_values)| Heat {
            x_edges,
            y_edges,
            values,
            colours,
            contours,
            print_values,
        })
}

fn mark() -> BoxedStrategy<Mark> {
    let measurement = (point(), option::of(range()), option::of(range()))
        .prop_map(|(at, x_range, y_range)| Measurement { at, x_range, y_range });
    let bar = (number(), number(), number(), number()).prop_map(|(from, to, base, value)| Bar {
        from,
        to,
        base,
        value,
    });
    let rung = (
        0usize..6,
        option::of(number()),
        option::of(number()),
        option::of(number()),
        option::of(words()),
    )
        .prop_map(|(category, value, lower, upper, note)| Rung {
            category,
            value,
            lower,
            upper,
            note,
        });
    prop_oneof![
        vec(point(), 0..12).prop_map(Mark::Line),
        vec(point(), 0..12).prop_map(Mark::Step),
        vec(measurement, 0..8).prop_map(Mark::Scatter),
        (vec(point(), 0..8), vec(point(), 0..8))
            .prop_map(|(lower, upper)| Mark::Band { lower, upper }),
        (orientation(), number()).prop_map(|(orientation, at)| Mark::Rule { orientation, at }),
        (orientation(), number(), number()).prop_map(|(orientation, from, to)| Mark::Span {
            orientation,
            from,
            to
        }),
        point().prop_map(Mark::Pin),
        (orientation(), vec(bar, 0..8))
            .prop_map(|(orientation, bars)| Mark::Bars { orientation, bars }),
        vec(rung, 0..6).prop_map(Mark::Ladder),
        heat().prop_map(Mark::Heat),
    ]
    .boxed()
}

fn series() -> impl Strategy<Value = Series> {
    let hues = vec![Hue::Blue, Hue::Ink, Hue::Muted, Hue::Sky];
    let strokes = vec![Stroke::Solid, Stroke::Dotted, Stroke::DashDot];
    (
        words(),
        option::of(prop::sample::select(hues)),
        option::of(prop::sample::select(strokes)),
        mark(),
    )
        .prop_map(|(label, hue, stroke, mark)| Series { label, hue, stroke, mark })
}

fn axis() -> impl Strategy<Value = Axis> {
    let scale = prop_oneof![
        Just(Scale::Linear),
        Just(Scale::Log10),
        Just(Scale::Probit),
        vec(words(), 0..5).prop_map(Scale::Category),
    ];
    let format = prop::sample::select(vec![TickFormat::Auto, TickFormat::Percent]);
    (words(), option::of(words()), scale, option::of(range()), format).prop_map(
        |(label, unit, scale, domain, format)| Axis { label, unit, scale, domain, format },
    )
}

fn figure() -> impl Strategy<Value = Figure> {
    let labels = vec![Labels::Auto, Labels::AtLineEnds, Labels::Legend, Labels::None];
    let text = (words(), option::of(words()), words());
    (text, axis(), axis(), prop::sample::select(labels), vec(series(), 0..6)).prop_map(
        |((title, subtitle, caption), x, y, labels, series)| Figure {
            subtitle,
            labels,
            series,
            ..Figure::new(title, caption).x(x).y(y)
        },
    )
}

fn options() -> impl Strategy<Value = Options> {
    let theme = prop::sample::select(vec![Theme::Auto, Theme::Light, Theme::Dark]);
    (number(), number(), theme, any::<[bool; 3]>(), option::of(words())).prop_map(
        |(width, height, theme, [heading, caption, background], id)| Options {
            width: 100.0 * width,
            height: 100.0 * height,
            theme,
            heading,
            caption,
            background,
            id,
        },
    )
}

/// Every number in geometry is finite.
fn finite(svg: &str) -> Result<(), TestCaseError> {
    let document = match roxmltree::Document::parse(svg) {
        Ok(document) => document,
        Err(error) => return Err(TestCaseError::fail(format!("{error}\n{svg}"))),
    };
    for node in document.descendants() {
        for attribute in node.attributes() {
            let numeric = ["x", "y", "x1", "x2", "y1", "y2", "width", "height", "cx", "cy", "d"];
            if !numeric.contains(&attribute.name()) {
                continue;
            }
            let value = attribute.value();
            prop_assert!(!value.contains("NaN") && !value.contains("inf"), "{}", value);
            let commands = |c: char| c.is_ascii_alphabetic() || c == ' ';
            for number in value.trim_end_matches('%').split(commands).filter(|n| !n.is_empty()) {
                let number: f64 = number.parse().map_err(|_| {
                    TestCaseError::fail(format!("{number:?} in {}={value:?}", attribute.name()))
                })?;
                prop_assert!(number.is_finite() && number.abs() < 1e5, "{}", value);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_figure_can_be_drawn(figure in figure(), options in options()) {
        let svg = to_svg(&figure, &options);
        finite(&svg)?;
        prop_assert_eq!(&svg, &to_svg(&figure, &options));
    }

    #[test]
    fn every_figure_has_a_table(figure in figure()) {
        let csv = to_csv(&figure);
        prop_assert!(csv.starts_with("series,mark"));
        prop_assert!(csv.ends_with('\n'));
    }

    #[test]
    fn a_figure_read_back_is_drawn_the_same(figure in figure()) {
        let json = serde_json::to_string(&figure).unwrap();
        let back: Figure = serde_json::from_str(&json).unwrap();
        if json.contains("null") {
            // What is not finite has become a gap; that happens once.
            let json = serde_json::to_string(&back).unwrap();
            let again: Figure = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(serde_json::to_string(&again).unwrap(), json);
        } else {
            prop_assert_eq!(&back, &figure);
        }
        finite(&to_svg(&back, &Options::default()))?;
    }
}
