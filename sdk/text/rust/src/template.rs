//! One chat template, in the environment that transformers gives it: Jinja2 with trim_blocks, lstrip_blocks,
//! loop controls, generation blocks, `raise_exception`, `strftime_now` and its own `tojson`, without any
//! access to files.
//!
//! Templates come from outside. A render may spend as many steps as its caller says: minijinja charges one
//! for an instruction and one for 64 bytes of data that the template makes, so that steps bound time and
//! memory together; recursion is limited by depth.
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Rest, Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State};

use crate::guard::{failure, Failure, INVALID_ARGUMENT, RESOURCE_EXHAUSTED};
use crate::{clock, context, filters, generation, methods, python};

const NAME: &str = "chat";
const CLOCK: &str = "__clock__";
/// Output over this is refused while it is written.
const MAX_OUTPUT: usize = 64 << 20;

pub struct Template {
    environment: Environment<'static>,
    pub generation_blocks: usize,
}

impl Template {
    pub fn compile(source: &str) -> Result<Template, Failure> {
        // Jinja2 reads every kind of line end as "\n".
        let source = source.replace("\r\n", "\n").replace('\r', "\n");
        let rewritten = match generation::rewrite(&source) {
            Ok(rewritten) => rewritten,
            Err((line, reason)) => return failure(INVALID_ARGUMENT, format!("line {line}: {reason}")),
        };
        let mut environment = environment();
        let generation_blocks = rewritten.blocks;
        match environment.add_template_owned(NAME, rewritten.source) {
            Ok(()) => Ok(Template { environment, generation_blocks }),
            Err(error) => failure(INVALID_ARGUMENT, describe(&error)),
        }
    }

    /// Renders with the variables of the JSON object `variables`. `marks` = None, or two texts to write where
    /// a generation block begins and ends. `seconds` since 1970 is what strftime_now shows unless the
    /// variable `date` holds an ISO date. `steps` is what it may spend; gives the text and what it spent.
    pub fn render(
        &self,
        variables: &str,
        seconds: i64,
        marks: Option<(String, String)>,
        steps: u64,
    ) -> Result<(String, u64), Failure> {
        let mut map: Vec<(Value, Value)> = Vec::new();
        let mut clock = Value::from(seconds);
        for (key, value) in context::parse(variables)? {
            if key == "date" {
                if let Some(text) = value.as_str() {
                    clock = clock::parse_iso(text).map_or_else(|| Value::from(text), Value::from);
                }
            }
            map.push((Value::from(key), context::to_value(value)));
        }
        map.push((Value::from(CLOCK), clock));
        if let Some((begin, end)) = marks {
            map.push((Value::from(generation::BEGIN), Value::from(begin)));
            map.push((Value::from(generation::END), Value::from(end)));
        }
        let mut out = Limited { bytes: Vec::new(), over: false };
        // A copy shares the compiled template: some 100 reference counts.
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(steps));
        let template = match environment.get_template(NAME) {
            Ok(template) => template,
            Err(error) => return failure(INVALID_ARGUMENT, describe(&error)),
        };
        let result = template
            .render_captured_to(Value::from_pairs(map), &mut out)
            .map(|captured| captured.state().fuel_levels().map_or(steps, |(spent, _)| spent));
        match result {
            Ok(spent) => match String::from_utf8(out.bytes) {
                Ok(text) => Ok((text, spent)),
                Err(error) => failure(INVALID_ARGUMENT, error),
            },
            Err(_) if out.over => failure(RESOURCE_EXHAUSTED, format!("writes more than {MAX_OUTPUT} bytes")),
            Err(error) if out_of_fuel(&error) => failure(
                RESOURCE_EXHAUSTED,
                format!("runs out of its budget of {steps} steps (a step is one instruction or 64 bytes)"),
            ),
            Err(error) => failure(INVALID_ARGUMENT, describe(&error)),
        }
    }
}

struct Limited {
    bytes: Vec<u8>,
    over: bool,
}

impl std::io::Write for Limited {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        if piece.len() > MAX_OUTPUT - self.bytes.len() {
            self.over = true;
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    if let Ok(syntax) = syntax.trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_recursion_limit(400);
    environment.set_unknown_method_callback(methods::unknown_method);
    environment.set_formatter(|out, state, value| {
        if value.kind() == ValueKind::Number && !value.is_integer() {
            if let Ok(number) = f64::try_from(value.clone()) {
                return out.write_str(&python::float_repr(number)).map_err(Error::from);
            }
        }
        minijinja::escape_formatter(out, state, value)
    });
    environment.remove_global("debug");
    filters::add(&mut environment);
    environment.add_function("cycler", |items: Rest<Value>| minijinja_contrib::globals::cycler(items.0));
    environment.add_function("joiner", minijinja_contrib::globals::joiner);
    environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, format!("raised by the template: {message}")))
    });
    environment.add_function("strftime_now", strftime_now);
    environment
}

fn strftime_now(state: &State, format: String) -> Result<String, Error> {
    let clock = state.lookup(CLOCK).unwrap_or(Value::UNDEFINED);
    let Some(seconds) = clock.as_i64() else {
        let detail = format!(
            "the variable 'date' must be YYYY-MM-DD or YYYY-MM-DDThh:mm:ss for strftime_now, not '{clock}'"
        );
        return Err(Error::new(ErrorKind::InvalidOperation, detail));
    };
    clock::strftime(&format, seconds).map_err(|conversion| {
        Error::new(
            ErrorKind::InvalidOperation,
            format!("strftime_now: conversion '{conversion}' is not supported"),
        )
    })
}

fn out_of_fuel(error: &Error) -> bool {
    let mut next: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<Error>().is_some_and(|e| e.kind() == ErrorKind::OutOfFuel) {
            return true;
        }
        next = error.source();
    }
    false
}

fn describe(error: &Error) -> String {
    let line = error.line().map_or_else(String::new, |line| format!("line {line}: "));
    match error.detail() {
        Some(detail) => format!("{line}{detail}"),
        None => format!("{line}{}", error.kind()),
    }
}
