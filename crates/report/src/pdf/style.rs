//! The style sheet of our own drawings: rules of the form `#id .class{…}` or `#id element{…}`.

use std::collections::BTreeMap;

/// Declarations by the class or the element that they are for, in the order of the sheet.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    rules: Vec<(Selector, BTreeMap<String, String>)>,
}

#[derive(Debug, PartialEq)]
enum Selector {
    Element(String),
    Class(String),
}

impl Sheet {
    /// Reads a sheet without media rules. What is not of the form above is an error, so that a
    /// drawing never loses its looks silently.
    ///
    /// # Errors
    /// The part that cannot be read.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Vec::new();
        for rule in text.split('}').map(str::trim).filter(|rule| !rule.is_empty()) {
            let (selectors, body) = rule.split_once('{').ok_or_else(|| rule.to_owned())?;
            let mut declarations = BTreeMap::new();
            for declaration in body.split(';').map(str::trim).filter(|text| !text.is_empty()) {
                let (name, value) =
                    declaration.split_once(':').ok_or_else(|| declaration.to_owned())?;
                declarations.insert(name.trim().to_owned(), value.trim().to_owned());
            }
            for selector in selectors.split(',') {
                let mut parts = selector.split_whitespace();
                let selector = match (parts.next(), parts.next(), parts.next()) {
                    (Some(id), Some(name), None) if id.starts_with('#') => {
                        match name.strip_prefix('.') {
                            Some(class) => Selector::Class(class.to_owned()),
                            None => Selector::Element(name.to_owned()),
                        }
                    }
                    _ => return Err(selector.to_owned()),
                };
                rules.push((selector, declarations.clone()));
            }
        }
        Ok(Self { rules })
    }

    /// What holds for an element with these classes: rules of classes win over rules of
    /// elements, later rules over earlier ones.
    pub(super) fn of(&self, element: &str, classes: &str) -> BTreeMap<&str, &str> {
        let mut found = BTreeMap::new();
        let classes: Vec<&str> = classes.split_whitespace().collect();
        let mut take = |wanted: &dyn Fn(&Selector) -> bool| {
            for (_, declarations) in self.rules.iter().filter(|(selector, _)| wanted(selector)) {
                for (name, value) in declarations {
                    found.insert(name.as_str(), value.as_str());
                }
            }
        };
        take(&|selector| matches!(selector, Selector::Element(name) if name == element));
        take(
            &|selector| matches!(selector, Selector::Class(name) if classes.contains(&name.as_str())),
        );
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_win_over_elements_and_later_rules_over_earlier_ones() {
        let sheet = Sheet::parse(
            "#f text{fill:#111;font-size:12px}\n#f .a,#f .b{fill:#222}#f .b{fill:#333}",
        )
        .unwrap();
        assert_eq!(sheet.of("text", "")["fill"], "#111");
        assert_eq!(sheet.of("text", "a")["fill"], "#222");
        let both = sheet.of("text", "b a");
        assert_eq!((both["fill"], both["font-size"]), ("#333", "12px"));
        assert!(Sheet::parse("@media print{#f text{fill:#000}}").is_err());
        assert!(Sheet::parse(".bare{fill:#000}").is_err());
    }
}
