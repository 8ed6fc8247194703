//! The filter `tojson` as transformers defines it: json.dumps(x, ensure_ascii=False, indent=None,
//! separators=None, sort_keys=False), not Jinja's own, which escapes for HTML.
use std::fmt::Write;

use minijinja::value::{from_args, Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Error, ErrorKind, State};

use crate::python::float_repr;

/// Values nested deeper are refused; Python stops near its recursion limit of 1000.
const MAX_DEPTH: usize = 200;

struct Style {
    ensure_ascii: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
}

type Arguments = (Option<Value>, Option<Value>, Option<Value>, Option<Value>, Kwargs);

pub fn tojson(state: &State, value: Value, arguments: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let arguments: Vec<Value> = arguments.0.into_iter().map(ValueOrKwargs::into_value).collect();
    let (ensure_ascii, indent, separators, sort_keys, kwargs): Arguments = from_args(&arguments)?;
    let ensure_ascii = given(ensure_ascii, &kwargs, "ensure_ascii")?.is_some_and(|v| v.is_true());
    let indent = given(indent, &kwargs, "indent")?.filter(|v| !v.is_none());
    let separators = given(separators, &kwargs, "separators")?.filter(|v| !v.is_none());
    let sort_keys = given(sort_keys, &kwargs, "sort_keys")?.is_some_and(|v| v.is_true());
    kwargs.assert_all_used()?;
    let indent = match &indent {
        None => None,
        Some(v) => Some(match (v.as_str(), v.as_i64()) {
            (Some(text), _) => text.to_string(),
            (None, Some(n)) => " ".repeat(n.clamp(0, 64) as usize),
            (None, None) => return refuse("indent must be an integer or a string"),
        }),
    };
    // json.dumps leaves no space after a comma at the end of a line.
    let mut style = Style {
        ensure_ascii,
        item_separator: if indent.is_some() { "," } else { ", " }.into(),
        key_separator: ": ".into(),
        indent,
        sort_keys,
    };
    if let Some(pair) = separators {
        let pair: Vec<Value> = pair.try_iter()?.collect();
        match &pair[..] {
            [item, key] if item.as_str().is_some() && key.as_str().is_some() => {
                style.item_separator = item.to_string();
                style.key_separator = key.to_string();
            }
            _ => return refuse("separators must be a pair of strings"),
        }
    }
    let mut out = String::new();
    write_value(state, &mut out, &value, &style, 0)?;
    Ok(Value::from(out))
}

fn given(positional: Option<Value>, kwargs: &Kwargs, name: &'static str) -> Result<Option<Value>, Error> {
    match positional {
        Some(value) => Ok(Some(value)),
        None if kwargs.has(name) => kwargs.get(name).map(Some),
        None => Ok(None),
    }
}

fn refuse<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message.into()))
}

fn write_value(
    state: &State,
    out: &mut String,
    value: &Value,
    style: &Style,
    depth: usize,
) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return refuse(format!("tojson: nested deeper than {MAX_DEPTH}"));
    }
    state.consume_fuel(1)?;
    let before = out.len();
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => write_number(out, value),
        ValueKind::String => write_string(out, value.as_str().unwrap_or(""), style),
        ValueKind::Seq => write_seq(state, out, value, style, depth)?,
        ValueKind::Map => write_map(state, out, value, style, depth)?,
        kind => return refuse(format!("tojson: a value of kind '{kind}' is not JSON serializable")),
    }
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Map) {
        state.consume_fuel((out.len() - before) as u64 / 64)?;
    }
    Ok(())
}

fn write_number(out: &mut String, value: &Value) {
    let written = value.to_string();
    if value.is_integer() {
        out.push_str(&written);
        return;
    }
    // Python's json spells the numbers that JSON lacks so.
    out.push_str(&match f64::try_from(value.clone()) {
        Ok(number) if number.is_nan() => "NaN".into(),
        Ok(number) if number.is_infinite() => if number < 0.0 { "-Infinity" } else { "Infinity" }.to_string(),
        Ok(number) => float_repr(number),
        Err(_) => written,
    });
}

fn new_line(out: &mut String, style: &Style, depth: usize) {
    if let Some(indent) = &style.indent {
        out.push('\n');
        for _ in 0..depth {
            out.push_str(indent);
        }
    }
}

fn write_seq(
    state: &State,
    out: &mut String,
    value: &Value,
    style: &Style,
    depth: usize,
) -> Result<(), Error> {
    out.push('[');
    let mut empty = true;
    for item in value.try_iter()? {
        if !empty {
            out.push_str(&style.item_separator);
        }
        empty = false;
        new_line(out, style, depth + 1);
        write_value(state, out, &item, style, depth + 1)?;
    }
    if !empty {
        new_line(out, style, depth);
    }
    out.push(']');
    Ok(())
}

fn write_map(
    state: &State,
    out: &mut String,
    value: &Value,
    style: &Style,
    depth: usize,
) -> Result<(), Error> {
    let mut keys: Vec<Value> = value.try_iter()?.collect();
    if style.sort_keys {
        keys.sort();
    }
    out.push('{');
    for (at, key) in keys.iter().enumerate() {
        if at > 0 {
            out.push_str(&style.item_separator);
        }
        new_line(out, style, depth + 1);
        match key.kind() {
            ValueKind::String => write_string(out, key.as_str().unwrap_or(""), style),
            ValueKind::Number | ValueKind::Bool | ValueKind::None => {
                out.push('"');
                write_value(state, out, key, style, depth + 1)?;
                out.push('"');
            }
            kind => return refuse(format!("tojson: keys must be strings or numbers, not '{kind}'")),
        }
        out.push_str(&style.key_separator);
        write_value(state, out, &value.get_item(key)?, style, depth + 1)?;
    }
    if !keys.is_empty() {
        new_line(out, style, depth);
    }
    out.push('}');
    Ok(())
}

fn write_string(out: &mut String, text: &str, style: &Style) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (style.ensure_ascii && c > '~') => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}"); // writing to a String does not fail
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
