//! C face of tokenizers; declared in `inlaid_text.h`.
use crate::buffers::{slice, Bytes, Words};
use crate::guard::{failure, guard, INVALID_ARGUMENT};
use crate::tokenizer::Loaded;

/// A handle. Calls that end by unwinding leave it usable: the only state that changes is a cache behind a
/// lock, which the crate leaves unused once poisoned.
pub struct TokenizerHandle {
    loaded: Loaded,
}

const MIB: usize = 1 << 20;

/// Reading a file builds maps and tries that are many times its size.
fn load_budget(bytes: usize) -> usize {
    (512 * MIB).saturating_add(bytes.saturating_mul(64))
}

/// Encoding keeps the alignment of every byte through each normalisation, and some 150 bytes per token.
fn encode_budget(bytes: usize) -> usize {
    (256 * MIB).saturating_add(bytes.saturating_mul(512))
}

fn utf8(bytes: &[u8]) -> Result<&str, crate::guard::Failure> {
    std::str::from_utf8(bytes)
        .or_else(|error| failure(INVALID_ARGUMENT, format!("invalid UTF-8 at byte {}", error.valid_up_to())))
}

/// # Safety
/// `json` points to `size` bytes; `out` and `error` are places for one result each.
#[no_mangle]
pub unsafe extern "C" fn inlaid_text_tokenizer_new(
    json: *const u8,
    size: usize,
    out: *mut *mut TokenizerHandle,
    error: *mut Bytes,
) -> i32 {
    let json = slice(json, size);
    guard(load_budget(size), error, || {
        let loaded = Loaded::from_json(utf8(json)?)?;
        *out = Box::into_raw(Box::new(TokenizerHandle { loaded }));
        Ok(())
    })
}

/// # Safety
/// `tokenizer` is null or a handle given back once.
#[no_mangle]
pub unsafe extern "C" fn inlaid_text_tokenizer_free(tokenizer: *mut TokenizerHandle) {
    guard(usize::MAX, std::ptr::null_mut(), || {
        if !tokenizer.is_null() {
            drop(Box::from_raw(tokenizer));
        }
        Ok(())
    });
}

/// # Safety
/// `tokenizer` is a live handle; `out` and `error` are places for one result each.
#[no_mangle]
pub unsafe extern "C" fn inlaid_text_tokenizer_ids(
    tokenizer: *const TokenizerHandle,
    out: *mut Words,
    error: *mut Bytes,
) -> i32 {
    guard(usize::MAX, error, || {
        let ids = &(*tokenizer).loaded.ids;
        *out = Words::from_vec(ids.iter().flat_map(|(id, special)| [*id, *special]).collect());
        Ok(())
    })
}

/// # Safety
/// `tokenizer` is a live handle.
#[no_mangle]
pub unsafe extern "C" fn inlaid_text_tokenizer_streaming(tokenizer: *const TokenizerHandle) -> i32 {
    (*tokenizer).loaded.streaming as i32
}

/// # Safety
/// `tokenizer` is a live handle; `text` points to `size` bytes; `out` and `error` are places for one result
/// each.
#[no_mangle]
pub unsafe extern "C" fn inlaid_text_tokenizer_encode(
    tokenizer: *const TokenizerHandle,
    text: *const u8,
    size: usize,
    add_special: bool,
    out: *mut Words,
    error: *mut Bytes,
) -> i32 {
    let text = slice(text, size);
    guard(encode_budget(size), error, || {
        *out = Words::from_vec((*tokenizer).loaded.encode(utf8(text)?, add_special)?);
        Ok(())
    })
}

/// # Safety
/// `tokenizer` is a live handle; `ids` points to `count` ids; `out` and `error` are places for one result
/// each.
#[no_mangle]
pub unsafe extern "C" fn inlaid_text_tokenizer_decode(
    tokenizer: *const TokenizerHandle,
    ids: *const u32,
    count: usize,
    skip_special: bool,
    out: *mut Bytes,
    error: *mut Bytes,
) -> i32 {
    let ids = slice(ids, count);
    guard(encode_budget(count.saturating_mul(8)), error, || {
        *out = Bytes::from_string((*tokenizer).loaded.decode(ids, skip_special)?);
        Ok(())
    })
}

/// Writes the id of a token, or -1, to `out`.
///
/// # Safety
/// `tokenizer` is a live handle; `token` points to `size` bytes; `out` and `error` are places for one result
/// each.
#[no_mangle]
pub unsafe extern "C" fn inlaid_text_token_to_id(
    tokenizer: *const TokenizerHandle,
    token: *const u8,
    size: usize,
    out: *mut i64,
    error: *mut Bytes,
) -> i32 {
    let token = slice(token, size);
    guard(usize::MAX, error, || {
        let id = std::str::from_utf8(token).ok().and_then(|t| (*tokenizer).loaded.tokenizer.token_to_id(t));
        *out = id.map_or(-1, i64::from);
        Ok(())
    })
}

/// Writes the token of an id to `out`; fails when there is none.
///
/// # Safety
/// `tokenizer` is a live handle; `out` and `error` are places for one result each.
#[no_mangle]
pub unsafe extern "C" fn inlaid_text_id_to_token(
    tokenizer: *const TokenizerHandle,
    id: u32,
    out: *mut Bytes,
    error: *mut Bytes,
) -> i32 {
    guard(usize::MAX, error, || match (*tokenizer).loaded.tokenizer.id_to_token(id) {
        Some(token) => {
            *out = Bytes::from_string(token);
            Ok(())
        }
        None => failure(INVALID_ARGUMENT, format!("there is no token with id {id}")),
    })
}
