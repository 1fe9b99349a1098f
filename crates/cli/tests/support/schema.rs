//! Whether a document fits its JSON schema: as much of the language as our schemas use, and stricter
//! in one thing: a key that a schema does not list is a fault.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What is wrong with a document; nothing where it fits.
pub fn faults(document: &Value, schema: &Value) -> Vec<String> {
    let mut checker = Checker { root: schema, faults: Vec::new() };
    let known = checker.fits(document, schema, "$");
    checker.unlisted(document, &known, "$");
    checker.faults
}

struct Checker<'a> {
    root: &'a Value,
    faults: Vec<String>,
}

/// Keys of an object that a schema lists; `None` where it does not say which there are.
type Keys = Option<BTreeSet<String>>;

impl Checker<'_> {
    fn fault(&mut self, place: &str, what: &str) {
        self.faults.push(format!("{place} {what}"));
    }

    /// Notes the faults of a value, and gives the keys that the schema lists.
    fn fits(&mut self, value: &Value, schema: &Value, place: &str) -> Keys {
        let rules = match schema {
            Value::Bool(true) => return None,
            Value::Object(rules) => rules,
            other => panic!("{place}: `{other}` is no schema"),
        };
        let mut keys: Keys = None;
        let mut list = |more: Keys| {
            if let Some(more) = more {
                keys.get_or_insert_default().extend(more);
            }
        };
        for (rule, asked) in rules {
            match rule.as_str() {
                "$schema" | "$defs" | "title" | "description" | "default" | "format" => {}
                "$ref" => {
                    let path = asked.as_str().unwrap().trim_start_matches('#');
                    let target = self.root.pointer(path);
                    let target = target.unwrap_or_else(|| panic!("{place}: {path} leads nowhere"));
                    list(self.fits(value, target, place));
                }
                "type" => self.kind(value, asked, place),
                "const" if value != asked => self.fault(place, &format!("is not {asked}: {value}")),
                "const" => {}
                "enum" if !asked.as_array().unwrap().contains(value) => {
                    self.fault(place, &format!("is none of {asked}: {value}"));
                }
                "enum" => {}
                "minimum" if value.as_f64() < asked.as_f64() && value.is_number() => {
                    self.fault(place, &format!("is below {asked}"));
                }
                "maximum" if value.as_f64() > asked.as_f64() => {
                    self.fault(place, &format!("is above {asked}"));
                }
                "minimum" | "maximum" => {}
                "properties" => list(self.properties(value, asked.as_object().unwrap(), place)),
                "additionalProperties" => self.further(value, rules, asked, place),
                "required" => {
                    for key in asked.as_array().unwrap() {
                        if value.is_object() && value.get(key.as_str().unwrap()).is_none() {
                            self.fault(place, &format!("has no {key}"));
                        }
                    }
                }
                "items" | "prefixItems" | "minItems" | "maxItems" => {
                    self.items(value, rule, asked, rules, place);
                }
                "anyOf" | "oneOf" => list(self.one_of(value, asked.as_array().unwrap(), place)),
                other => panic!("{place}: the rule `{other}` is not understood"),
            }
        }
        keys
    }

    fn kind(&mut self, value: &Value, asked: &Value, place: &str) {
        let is = |kind: &Value| match kind.as_str().unwrap() {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.is_u64() || value.is_i64(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("{place}: `{other}` is no type"),
        };
        let fits = match asked {
            Value::Array(kinds) => kinds.iter().any(is),
            kind => is(kind),
        };
        if !fits {
            self.fault(place, &format!("is no {asked}: {value}"));
        }
    }

    fn properties(&mut self, value: &Value, asked: &Map<String, Value>, place: &str) -> Keys {
        for (key, inner) in value.as_object().into_iter().flatten() {
            if let Some(schema) = asked.get(key) {
                let place = format!("{place}.{key}");
                let known = self.fits(inner, schema, &place);
                self.unlisted(inner, &known, &place);
            }
        }
        Some(asked.keys().cloned().collect())
    }

    /// Keys beside those that are listed.
    fn further(&mut self, value: &Value, rules: &Map<String, Value>, asked: &Value, place: &str) {
        let listed = rules.get("properties").and_then(Value::as_object);
        for (key, inner) in value.as_object().into_iter().flatten() {
            if listed.is_some_and(|listed| listed.contains_key(key)) {
                continue;
            }
            if *asked == Value::Bool(false) {
                self.fault(place, &format!("may not have `{key}`"));
            } else {
                self.fits(inner, asked, &format!("{place}.{key}"));
            }
        }
    }

    fn items(
        &mut self,
        value: &Value,
        rule: &str,
        asked: &Value,
        rules: &Map<String, Value>,
        place: &str,
    ) {
        let Some(list) = value.as_array() else { return };
        let before = rules.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        let length = list.len() as u64;
        match (rule, asked) {
            ("minItems", asked) if Some(length) < asked.as_u64() => {
                self.fault(place, "is too short");
            }
            ("maxItems", asked) if Some(length) > asked.as_u64() => {
                self.fault(place, "is too long")
            }
            ("prefixItems", Value::Array(schemas)) => {
                for (index, (item, schema)) in list.iter().zip(schemas).enumerate() {
                    let place = format!("{place}[{index}]");
                    let known = self.fits(item, schema, &place);
                    self.unlisted(item, &known, &place);
                }
            }
            ("items", schema) => {
                for (index, item) in list.iter().enumerate().skip(before) {
                    let place = format!("{place}[{index}]");
                    let known = self.fits(item, schema, &place);
                    self.unlisted(item, &known, &place);
                }
            }
            _ => {}
        }
    }

    /// At least one of several schemas; the keys are those of the ones that fit.
    fn one_of(&mut self, value: &Value, schemas: &[Value], place: &str) -> Keys {
        let before = self.faults.len();
        let (mut keys, mut fitting, mut nearest) = (None::<BTreeSet<String>>, 0, Vec::new());
        for schema in schemas {
            let found = self.fits(value, schema, place);
            let faults = self.faults.split_off(before);
            if faults.is_empty() {
                fitting += 1;
                if let Some(found) = found {
                    keys.get_or_insert_default().extend(found);
                }
            } else if nearest.is_empty() || faults.len() < nearest.len() {
                nearest = faults;
            }
        }
        if fitting == 0 {
            self.faults.extend(nearest);
        }
        keys
    }

    /// Keys that no schema lists, where one lists any.
    fn unlisted(&mut self, value: &Value, known: &Keys, place: &str) {
        let (Some(known), Some(fields)) = (known, value.as_object()) else { return };
        for key in fields.keys().filter(|key| !known.contains(*key)) {
            self.fault(place, &format!("has `{key}`, which its schema does not list"));
        }
    }
}
