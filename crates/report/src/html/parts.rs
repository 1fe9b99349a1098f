//! Small pieces that the sections share.

use super::escape::escape;
use crate::words::sign;
use vocabulary::rounding::DIGITS;
use vocabulary::{Claim, Quoted, Standing};

/// A number as a person reads it, with the number itself beside it for machines.
pub(super) fn number(end: impl Into<Quoted>, digits: usize) -> String {
    let end = end.into();
    if !end.number().is_finite() {
        return "unbounded".into();
    }
    format!("<data value=\"{}\">{}</data>", exact(end.number()), end.digits(digits))
}

/// The same with the sign of the end.
pub(super) fn signed(end: impl Into<Quoted>) -> String {
    let end = end.into();
    if !end.number().is_finite() {
        return "unbounded".into();
    }
    format!("{}\u{a0}{}", sign(end.side()), number(end, DIGITS))
}

/// A share as percent with the sign of the end, with the share itself for machines.
pub(super) fn share(end: impl Into<Quoted>) -> String {
    let end = end.into();
    let (sign, shown) = (sign(end.side()), end.times(100.0));
    format!("{sign}\u{a0}<data value=\"{}\">{shown} %</data>", exact(end.number()))
}

/// As JSON spells it.
pub(super) fn exact(value: f64) -> String {
    serde_json::Number::from_f64(value).map_or_else(|| "null".into(), |number| number.to_string())
}

/// The quotable end of a claim, with its sign.
pub(super) fn claim(claim: &Claim) -> String {
    signed(claim.quoted())
}

/// A delta or a rate as a power of ten where it is one.
pub(super) fn power_of_ten(value: f64) -> String {
    let exponent = value.log10().round();
    if value > 0.0 && value < 0.01 && format!("{value:e}") == format!("1e{exponent}") {
        return format!("10<sup>\u{2212}{}</sup>", -exponent);
    }
    escape(&vocabulary::rounding::plain(value))
}

pub(super) fn standing(standing: Standing) -> String {
    let name = standing.as_str();
    format!("<span class=\"standing {name}\">{name}</span>")
}

pub(super) const NOT_PRIVATE: &str = "<span class=\"tag\">not private</span>";

/// A table; the first cell of each row is its heading. Cells are markup; columns whose name
/// begins with `#` hold numbers.
pub(super) fn table(caption: &str, columns: &[&str], rows: &[Vec<String>]) -> String {
    let class = |column: &str| if column.starts_with('#') { " class=\"n\"" } else { "" };
    let mut text = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">\n<table>\n\
         <thead><tr>",
        escape(caption)
    );
    for column in columns {
        let name = column.strip_prefix('#').unwrap_or(column);
        text.push_str(&format!("<th scope=\"col\"{}>{name}</th>", class(column)));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        text.push_str("<tr>");
        for (place, (cell, column)) in row.iter().zip(columns).enumerate() {
            if place == 0 {
                text.push_str(&format!("<th scope=\"row\">{cell}</th>"));
            } else {
                text.push_str(&format!("<td{}>{cell}</td>", class(column)));
            }
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table>\n</div>\n");
    text
}
