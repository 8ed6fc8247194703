//! Methods of Python's values inside templates: those of minijinja-contrib's pycompat, with the ones replaced
//! that treat white space in Rust's way, and the ones added that it lacks.
use minijinja::value::{from_args, Kwargs, Tuple, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};
use minijinja_contrib::pycompat;

use crate::python;

pub fn unknown_method(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    if value.kind() == ValueKind::String {
        if let Some(text) = value.as_str() {
            if let Some(result) = string_method(text, method, args) {
                return result;
            }
        }
    }
    if value.kind() == ValueKind::Seq && method == "index" {
        return index(state, value, args);
    }
    pycompat::unknown_method_callback(state, value, method, args)
}

/// The filter `trim`, which is str.strip.
pub fn trim(text: &str, chars: Option<&str>) -> String {
    strip(text, chars, true, true).to_string()
}

fn strip<'a>(text: &'a str, chars: Option<&str>, left: bool, right: bool) -> &'a str {
    let drop = |c: char| chars.map_or_else(|| python::is_space(c), |set| set.contains(c));
    let text = if left { text.trim_start_matches(drop) } else { text };
    if right {
        text.trim_end_matches(drop)
    } else {
        text
    }
}

fn index(state: &State, list: &Value, args: &[Value]) -> Result<Value, Error> {
    let (wanted,): (Value,) = from_args(args)?;
    state.consume_fuel(list.len().unwrap_or(0) as u64)?;
    match list.try_iter()?.position(|item| item == wanted) {
        Some(at) => Ok(Value::from(at)),
        None => Err(Error::new(ErrorKind::InvalidOperation, "the value is not in the list")),
    }
}

/// None for a method that pycompat handles.
fn string_method(text: &str, method: &str, args: &[Value]) -> Option<Result<Value, Error>> {
    Some(match method {
        "strip" => strip_method(text, args, true, true),
        "lstrip" => strip_method(text, args, true, false),
        "rstrip" => strip_method(text, args, false, true),
        "split" => split(text, args, false),
        "rsplit" => split(text, args, true),
        "splitlines" => split_lines(text, args),
        "isspace" => {
            from_args(args).map(|()| Value::from(!text.is_empty() && text.chars().all(python::is_space)))
        }
        "removeprefix" => {
            from_args(args).map(|(p,): (&str,)| Value::from(text.strip_prefix(p).unwrap_or(text)))
        }
        "removesuffix" => {
            from_args(args).map(|(p,): (&str,)| Value::from(text.strip_suffix(p).unwrap_or(text)))
        }
        "partition" => partition(text, args, false),
        "rpartition" => partition(text, args, true),
        _ => return None,
    })
}

fn strip_method(text: &str, args: &[Value], left: bool, right: bool) -> Result<Value, Error> {
    let (chars,): (Option<&str>,) = from_args(args)?;
    Ok(Value::from(strip(text, chars, left, right)))
}

fn split(text: &str, args: &[Value], from_right: bool) -> Result<Value, Error> {
    let (separator, limit, kwargs): (Option<&str>, Option<i64>, Kwargs) = from_args(args)?;
    let separator = match separator {
        Some(given) => Some(given),
        None => kwargs.get("sep")?,
    };
    let limit = match limit {
        Some(given) => Some(given),
        None => kwargs.get("maxsplit")?,
    };
    kwargs.assert_all_used()?;
    let limit = limit.and_then(|n| usize::try_from(n).ok());
    let parts: Vec<String> = match separator {
        None if from_right => python::rsplit_space(text, limit),
        None => python::split_space(text, limit),
        Some("") => return Err(Error::new(ErrorKind::InvalidOperation, "empty separator")),
        Some(at) => {
            let most = limit.map_or(usize::MAX, |n| n.saturating_add(1));
            if from_right {
                let mut parts: Vec<String> = text.rsplitn(most, at).map(String::from).collect();
                parts.reverse();
                parts
            } else {
                text.splitn(most, at).map(String::from).collect()
            }
        }
    };
    Ok(Value::from(parts))
}

fn split_lines(text: &str, args: &[Value]) -> Result<Value, Error> {
    let (keep, kwargs): (Option<bool>, Kwargs) = from_args(args)?;
    let keep = match keep {
        Some(given) => given,
        None => kwargs.get::<Option<bool>>("keepends")?.unwrap_or(false),
    };
    kwargs.assert_all_used()?;
    Ok(Value::from(python::split_lines(text, keep)))
}

fn partition(text: &str, args: &[Value], from_right: bool) -> Result<Value, Error> {
    let (at,): (&str,) = from_args(args)?;
    if at.is_empty() {
        return Err(Error::new(ErrorKind::InvalidOperation, "empty separator"));
    }
    let parts = if from_right {
        text.rsplit_once(at).map_or(["", "", text], |(head, tail)| [head, at, tail])
    } else {
        text.split_once(at).map_or([text, "", ""], |(head, tail)| [head, at, tail])
    };
    Ok(Value::from(Tuple::from(parts.map(Value::from))))
}
