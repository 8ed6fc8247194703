//! C face of chat templates; declared in `inlaid_text.h`.
use crate::buffers::{slice, Bytes};
use crate::guard::{failure, guard, Failure, INVALID_ARGUMENT};
use crate::template::Template;

const MIB: usize = 1 << 20;

fn utf8<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str, Failure> {
    std::str::from_utf8(bytes).or_else(|error| {
        failure(INVALID_ARGUMENT, format!("{what}: invalid UTF-8 at byte {}", error.valid_up_to()))
    })
}

/// # Safety
/// `source` points to `size` bytes; `out`, `generation_blocks` and `error` are places for one result each.
#[no_mangle]
pub unsafe extern "C" fn inlaid_text_template_new(
    source: *const u8,
    size: usize,
    out: *mut *mut Template,
    generation_blocks: *mut usize,
    error: *mut Bytes,
) -> i32 {
    let source = slice(source, size);
    let budget = 256 * MIB;
    guard(budget, error, || {
        let template = Template::compile(utf8(source, "template")?)?;
        *generation_blocks = template.generation_blocks;
        *out = Box::into_raw(Box::new(template));
        Ok(())
    })
}

/// # Safety
/// `template` is null or a handle given back once.
#[no_mangle]
pub unsafe extern "C" fn inlaid_text_template_free(template: *mut Template) {
    guard(usize::MAX, std::ptr::null_mut(), || {
        if !template.is_null() {
            drop(Box::from_raw(template));
        }
        Ok(())
    });
}

/// `*steps` is what the render may spend; on success it becomes what it spent.
/// `mark_begin` and `mark_end` are code points to write around generation blocks, or 0 for none.
///
/// # Safety
/// `template` is a live handle; `variables` points to `size` bytes; `steps` to a number; `out` and `error` are
/// places for one result each.
#[no_mangle]
pub unsafe extern "C" fn inlaid_text_template_render(
    template: *const Template,
    variables: *const u8,
    size: usize,
    seconds: i64,
    mark_begin: u32,
    mark_end: u32,
    steps: *mut u64,
    out: *mut Bytes,
    error: *mut Bytes,
) -> i32 {
    let (template, variables) = (&*template, slice(variables, size));
    let budget = (96 * MIB).saturating_add(size.saturating_mul(64));
    guard(budget, error, || {
        let variables = utf8(variables, "variables")?;
        let marks = match (char::from_u32(mark_begin), char::from_u32(mark_end)) {
            (Some(begin), Some(end)) if mark_begin != 0 && mark_end != 0 => Some((begin.into(), end.into())),
            _ => None,
        };
        let (text, spent) = template.render(variables, seconds, marks, *steps)?;
        *out = Bytes::from_string(text);
        *steps = spent;
        Ok(())
    })
}
