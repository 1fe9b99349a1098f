//! Draws one figure of each kind into a folder, to be looked at:
//! `cargo run --release -p probes --example gallery -- FOLDER`.
//!
//! The curves are closed forms for the Gaussian mechanism and made-up scores; they show the
//! drawing, not a result.

#[path = "../../figures/tests/gallery/mod.rs"]
mod gallery;

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("gallery"), PathBuf::from);
    std::fs::create_dir_all(&folder)?;
    for (name, figure) in gallery::all() {
        for (suffix, theme) in [
            ("", figures::Theme::Auto),
            ("-light", figures::Theme::Light),
            ("-dark", figures::Theme::Dark),
        ] {
            let options = figures::Options::default().theme(theme);
            let svg = figures::to_svg(&figure, &options);
            std::fs::write(folder.join(format!("{name}{suffix}.svg")), svg)?;
        }
        let svg = figures::to_svg(&figure, &figures::Options::paper());
        std::fs::write(folder.join(format!("{name}-paper.svg")), svg)?;
        std::fs::write(folder.join(format!("{name}.csv")), figures::to_csv(&figure))?;
    }
    Ok(())
}
