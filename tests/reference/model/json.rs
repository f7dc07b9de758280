//! `json`, for texts of integers and literals.

use super::{Done, Model, failed};

/// Largest integer that every reader of JSON keeps exact.
const LARGEST: i64 = 1_000_000_000_000_000;

impl Model<'_> {
    /// Returns the result of a filter, which must be the only one.
    pub(super) fn json(&self, text: &str, filter: &str) -> Done<String> {
        let values = self.json_values(text)?;
        let [value] = &values[..] else { return Err(failed("expression", 1)) };
        Ok(match filter {
            "." => value.clone(),
            "[.]" => format!("[{value}]"),
            ". == 1" => (value == "1").to_string(),
            _ => match &**value {
                "true" | "false" => "boolean".into(),
                "null" => "null".into(),
                _ => "number".into(),
            },
        })
    }

    /// Returns the JSON values of a text. The result is uncertain for other numbers than integers.
    pub(super) fn json_values(&self, text: &str) -> Done<Vec<String>> {
        let mut values = Vec::new();
        for token in text.split_ascii_whitespace() {
            let is_integer = |number: i64| number.to_string() == token && number.abs() < LARGEST;
            let is_value = matches!(token, "true" | "false" | "null")
                || token.parse().is_ok_and(is_integer) && token != "-0";
            if !is_value {
                self.certain.set(self.certain.get() && token.contains(['x', 'y', 'z', '/']));
                return Err(failed("expression", 1));
            }
            values.push(token.to_owned());
        }
        Ok(values)
    }
}
