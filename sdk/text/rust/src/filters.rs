//! Filters and tests of Jinja2 that minijinja defines in its own way.
use minijinja::filters;
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, State};

use crate::{methods, python, tojson};

pub fn add(environment: &mut Environment) {
    environment.add_filter("tojson", tojson::tojson);
    environment.add_filter("trim", trim);
    environment.add_filter("default", default);
    environment.add_filter("d", default);
    environment.add_filter("int", int);
    environment.add_filter("float", float);
    environment.add_test("sequence", is_sequence);
    environment.add_test("iterable", is_iterable);
}

fn trim(text: String, chars: Option<String>, kwargs: Kwargs) -> Result<String, Error> {
    let chars = match chars {
        Some(given) => Some(given),
        None => kwargs.get::<Option<String>>("chars")?,
    };
    kwargs.assert_all_used()?;
    Ok(methods::trim(&text, chars.as_deref()))
}

/// default(value, default_value="", boolean=false): for undefined values, with `boolean` for all that count
/// as false.
fn default(
    value: Value,
    other: Option<Value>,
    boolean: Option<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let other = match other {
        Some(given) => given,
        None => kwargs.get::<Option<Value>>("default_value")?.unwrap_or_else(|| Value::from("")),
    };
    let boolean = match boolean {
        Some(given) => given,
        None => kwargs.get::<Option<Value>>("boolean")?.unwrap_or_else(|| Value::from(false)),
    };
    kwargs.assert_all_used()?;
    let use_other = value.is_undefined() || (boolean.is_true() && !value.is_true());
    Ok(if use_other { other } else { value })
}

/// What cannot be converted becomes the default, which is 0 unless given.
fn int(
    state: &State,
    v: Value,
    default: Option<Value>,
    base: Option<u32>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let default = or_zero(default, &kwargs, Value::from(0));
    filters::int(state, &without_space(v), default, base, kwargs)
}

fn float(state: &State, v: Value, default: Option<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let default = or_zero(default, &kwargs, Value::from(0.0));
    filters::float(state, &without_space(v), default, kwargs)
}

fn or_zero(default: Option<Value>, kwargs: &Kwargs, zero: Value) -> Option<Value> {
    default.or_else(|| (!kwargs.has("default")).then_some(zero))
}

fn without_space(value: Value) -> Value {
    match value.as_str() {
        Some(text) => Value::from(text.trim_matches(python::is_space)),
        None => value,
    }
}

/// Whatever has a length and items: strings and mappings too.
fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::String | ValueKind::Map | ValueKind::Undefined)
}

fn is_iterable(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Undefined | ValueKind::String => true,
        ValueKind::None => false,
        _ => value.try_iter().is_ok(),
    }
}
