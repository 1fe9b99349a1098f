//! How a figure is dressed: everything that is not in the figure itself.

/// Light or dark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// Follows the reader's preference on a screen; light on paper.
    #[default]
    Auto,
    Light,
    Dark,
}

/// Size, theme and which words are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Width in pixels, brought into 200..=4000.
    pub width: f64,
    /// Height in pixels, brought into 160..=4000. It grows where the words would leave no
    /// room for the plot.
    pub height: f64,
    pub theme: Theme,
    /// Whether the title and subtitle are drawn. They are always in the description.
    pub heading: bool,
    /// Whether the caption is drawn. It is always in the description.
    pub caption: bool,
    /// Whether the figure has a background of its own.
    pub background: bool,
    /// The id of the SVG element; absent: made from the figure's content, so that several
    /// figures can stand in one page.
    pub id: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            width: 640.0,
            height: 420.0,
            theme: Theme::Auto,
            heading: true,
            caption: true,
            background: true,
            id: None,
        }
    }
}

impl Options {
    /// Without heading and caption, light: for a paper, which brings its own words.
    pub fn paper() -> Options {
        Options {
            theme: Theme::Light,
            heading: false,
            caption: false,
            height: 360.0,
            ..Options::default()
        }
    }

    pub fn theme(mut self, theme: Theme) -> Options {
        self.theme = theme;
        self
    }

    pub(crate) fn size(&self) -> (f64, f64) {
        let within = |value: f64, lower: f64, default: f64| {
            if value.is_finite() { value.clamp(lower, 4000.0) } else { default }
        };
        (within(self.width, 200.0, 640.0), within(self.height, 160.0, 420.0))
    }
}
