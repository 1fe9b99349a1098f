//! Who answers for a report, and when: what stands on its first page.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The words on the first page. Nothing here is computed, and the date is what a person says
/// it is, so that the same inputs give the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cover {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The person or the team who answers for the training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
}

impl Cover {
    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Owner and date in one line.
pub(crate) fn line(cover: &Cover) -> Option<String> {
    let parts: Vec<&str> =
        [&cover.owner, &cover.date].into_iter().flatten().map(String::as_str).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The year, month and day of `YYYY-MM-DD`, if that is a day of the calendar.
pub fn calendar_day(text: &str) -> Option<(u16, u8, u8)> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = |part: &str, count: usize| {
        part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if parts.next().is_some() || !digits(year, 4) || !digits(month, 2) || !digits(day, 2) {
        return None;
    }
    let (year, month, day): (u16, u8, u8) =
        (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=last).contains(&day).then_some((year, month, day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_the_calendar() {
        assert_eq!(calendar_day("2028-02-29"), Some((2028, 2, 29)));
        for no_day in
            ["2027-02-29", "2026-13-01", "2026-00-10", "26-01-01", "2026-1-1", "today", ""]
        {
            assert_eq!(calendar_day(no_day), None, "{no_day}");
        }
    }
}
