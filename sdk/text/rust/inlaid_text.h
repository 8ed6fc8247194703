// C face of the Rust library inlaid_text: tokenizers and chat templates. For sdk/text only; nothing of it is
// exported.
//
// Every function that can fail returns a code of inlaid::Code (0 = OK) and then leaves a message in *error.
// Results are owned by Rust: give each one back with its free function. Handles are immutable and may be used
// by any number of threads. The three functions marked "deep" recurse as deep as the limits of their input
// allow: call them under on_own_stack.
#ifndef INLAID_SDK_TEXT_RUST_INLAID_TEXT_H_
#define INLAID_SDK_TEXT_RUST_INLAID_TEXT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct inlaid_text_bytes {
  uint8_t* data;  // null when size is 0
  size_t size;
} inlaid_text_bytes;

typedef struct inlaid_text_words {
  uint32_t* data;  // null when size is 0
  size_t size;
} inlaid_text_words;

typedef struct inlaid_text_tokenizer inlaid_text_tokenizer;
typedef struct inlaid_text_template inlaid_text_template;

void inlaid_text_bytes_free(inlaid_text_bytes* bytes);
void inlaid_text_words_free(inlaid_text_words* words);

// Reads a tokenizer.json. Deep.
int32_t inlaid_text_tokenizer_new(const uint8_t* json, size_t size, inlaid_text_tokenizer** out,
                                  inlaid_text_bytes* error);
void inlaid_text_tokenizer_free(inlaid_text_tokenizer* tokenizer);
// Pairs (id, 1 if special) of all tokens, ascending.
int32_t inlaid_text_tokenizer_ids(const inlaid_text_tokenizer* tokenizer, inlaid_text_words* out,
                                  inlaid_text_bytes* error);
// How its decoder may be used on a growing sequence: 0 = only on the whole, 1 = step by step, 2 = step by
// step except inside a run of byte tokens "<0xNN>".
int32_t inlaid_text_tokenizer_streaming(const inlaid_text_tokenizer* tokenizer);
// Triples (id, begin, end), positions in bytes of the text.
int32_t inlaid_text_tokenizer_encode(const inlaid_text_tokenizer* tokenizer, const uint8_t* text, size_t size,
                                     bool add_special, inlaid_text_words* out, inlaid_text_bytes* error);
int32_t inlaid_text_tokenizer_decode(const inlaid_text_tokenizer* tokenizer, const uint32_t* ids,
                                     size_t count, bool skip_special, inlaid_text_bytes* out,
                                     inlaid_text_bytes* error);
// -1 in *out when there is no such token.
int32_t inlaid_text_token_to_id(const inlaid_text_tokenizer* tokenizer, const uint8_t* token, size_t size,
                                int64_t* out, inlaid_text_bytes* error);
int32_t inlaid_text_id_to_token(const inlaid_text_tokenizer* tokenizer, uint32_t id, inlaid_text_bytes* out,
                                inlaid_text_bytes* error);

// Compiles a template. Deep. *generation_blocks = number of {% generation %} blocks in its source.
int32_t inlaid_text_template_new(const uint8_t* source, size_t size, inlaid_text_template** out,
                                 size_t* generation_blocks, inlaid_text_bytes* error);
void inlaid_text_template_free(inlaid_text_template* chat_template);
// Renders with the variables of a JSON object. Deep. `seconds` since 1970 is the clock of strftime_now,
// unless the variable `date` holds an ISO date. mark_begin and mark_end: code points to write around
// generation blocks, 0 = none. *steps is what the render may spend, an instruction or 64 bytes being one step;
// on success it becomes what it spent.
int32_t inlaid_text_template_render(const inlaid_text_template* chat_template, const uint8_t* variables,
                                    size_t size, int64_t seconds, uint32_t mark_begin, uint32_t mark_end,
                                    uint64_t* steps, inlaid_text_bytes* out, inlaid_text_bytes* error);

#ifdef __cplusplus
}
#endif

#endif  // INLAID_SDK_TEXT_RUST_INLAID_TEXT_H_
