//! Variables of a render: a JSON object becomes minijinja values, keys in the order written.
use minijinja::Value;
use serde_json::Value as Json;

use crate::guard::{failure, Failure, INVALID_ARGUMENT};

pub fn parse(json: &str) -> Result<serde_json::Map<String, Json>, Failure> {
    match serde_json::from_str(json) {
        Ok(Json::Object(map)) => Ok(map),
        Ok(_) => failure(INVALID_ARGUMENT, "the variables of a render must be an object"),
        Err(error) => failure(INVALID_ARGUMENT, format!("the variables of a render: {error}")),
    }
}

/// Depth is bounded by serde_json (128).
pub fn to_value(json: Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(b) => Value::from(b),
        Json::Number(n) => match (n.as_i64(), n.as_u64(), n.as_f64()) {
            (Some(i), _, _) => Value::from(i),
            (None, Some(u), _) => Value::from(u),
            (None, None, f) => Value::from(f.unwrap_or(f64::NAN)),
        },
        Json::String(s) => Value::from(s),
        Json::Array(items) => Value::from(items.into_iter().map(to_value).collect::<Vec<_>>()),
        Json::Object(map) => Value::from_pairs(map.into_iter().map(|(k, v)| (k, to_value(v)))),
    }
}
