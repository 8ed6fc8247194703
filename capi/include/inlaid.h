/* inlaid.h - public C ABI of Inlaid, a training engine that one links (libinlaid.so.0).
 *
 * The vtables that a C embedder may plug in (allocator, log sink) are in the companion header, inlaid_plugin.h.
 *
 * A whole job in five calls:
 *
 *   inlaid_runtime_create(NULL, &rt);
 *   inlaid_config_parse("{\"model\": {\"path\": ...}, ...}", NULL, &config);
 *   inlaid_job_create(rt, config, &job);
 *   inlaid_job_start(job, &run);
 *   while (inlaid_run_next(run, -1, &event) == NULL) { ... inlaid_event_release(event); }
 *
 * Language: C99, also valid C++17. Fixed-width integers, double and pointers only; no C enum, bool, long or
 * size_t in a signature, no struct by value, no varargs.
 *
 * Rules that hold for every function (a comment below mentions only what is special):
 *
 *  R1  Errors. A function returning inlaid_error * returns NULL on success. The caller owns a non-NULL error
 *      and passes it to inlaid_error_release. On failure every out parameter that is a pointer is NULL, every
 *      other one is 0, and nothing is owed. Required out pointers must not be NULL (INVALID_ARGUMENT).
 *  R2  References. "new" = the caller owns one reference and releases it with the matching release function.
 *      "borrowed" = valid until the named owner is released; never free it.
 *  R3  Releases accept NULL, return void, cannot fail, never block, never join a thread, and may come from any
 *      thread (a garbage collector's included) and in any order: children keep their parents alive.
 *  R4  Ownership transfers happen only on success; after a failure the caller still owns the object. They are:
 *      inlaid_batch_add and inlaid_pass_set_gradient take the tensor.
 *  R5  Threads. Handles of different trainers are independent. One handle is used by one thread at a time; the
 *      library checks this with an atomic owner flag and returns FAILED_PRECONDITION instead of racing. Marked
 *      [any thread]: may be called concurrently with anything else on the same handle.
 *  R6  Callbacks. Work is pulled (inlaid_run_next), never pushed. No caller code runs on an SDK thread except the
 *      log sink and the allocator. DLPack deleters run inside calls made by the caller's own threads.
 *  R7  Strings are UTF-8 and NUL-terminated unless a size is given; invalid UTF-8 is INVALID_ARGUMENT.
 *      JSON is strict: an unknown or mistyped key is INVALID_ARGUMENT naming its full path. A NULL json argument
 *      means {}.
 *  R8  Timeouts are milliseconds: 0 = poll, negative = wait for ever. Where the comment does not say otherwise, an
 *      expired timeout is DEADLINE_EXCEEDED and changes nothing.
 *  R9  After fork(), a call on an inherited handle in the child is FAILED_PRECONDITION.
 *  R10 No C++ exception ever leaves a function of this header (noexcept when compiled as C++).
 */
#ifndef INLAID_H
#define INLAID_H
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#  define INLAID_API     __attribute__((visibility("default")))
#  define INLAID_MUSTUSE __attribute__((warn_unused_result))
#else
#  define INLAID_API
#  define INLAID_MUSTUSE
#endif
/* g++ rejects a noexcept definition of a function declared without it, so the declaration carries it. */
#ifdef __cplusplus
#  define INLAID_NOEXCEPT noexcept
extern "C" {
#else
#  define INLAID_NOEXCEPT
#endif

/* ---- 0. versions, capabilities -------------------------------------------------------------------------- */
#define INLAID_ABI_MAJOR 0   /* 1 at the freeze */
#define INLAID_ABI_MINOR 1
#define INLAID_ABI_VERSION ((INLAID_ABI_MAJOR << 16) | INLAID_ABI_MINOR)

/* (major << 16) | minor of the loaded library; bindings compare it with INLAID_ABI_VERSION at load.
 * Same major and loaded minor >= compiled minor is compatible. [any thread] */
INLAID_API uint32_t inlaid_abi_version(void) INLAID_NOEXCEPT;
/* Human-readable version with build identification; static storage. [any thread] */
INLAID_API const char *inlaid_version_string(void) INLAID_NOEXCEPT;
/* 1 if this installation offers the feature ("lora", "gguf", "avx512", "cuda", ...), else 0; unknown names
 * and NULL give 0. Missing hardware is this answer at run time, never another build of the library. [any thread] */
INLAID_API int32_t inlaid_has_feature(const char *name) INLAID_NOEXCEPT;

/* ---- 1. errors: NULL is success ------------------------------------------------------------------------- */
/* The 17 canonical status codes. Treat an unknown value as INLAID_UNKNOWN. */
typedef int32_t inlaid_code;
#define INLAID_OK                   0
#define INLAID_CANCELLED            1
#define INLAID_UNKNOWN              2
#define INLAID_INVALID_ARGUMENT     3
#define INLAID_DEADLINE_EXCEEDED    4
#define INLAID_NOT_FOUND            5
#define INLAID_ALREADY_EXISTS       6
#define INLAID_PERMISSION_DENIED    7
#define INLAID_RESOURCE_EXHAUSTED   8   /* out of host or device memory, disk full */
#define INLAID_FAILED_PRECONDITION  9   /* wrong state, handle in use by another thread, forked child */
#define INLAID_ABORTED             10   /* communicator aborted, a peer left */
#define INLAID_OUT_OF_RANGE        11   /* past the end: dataset, event stream */
#define INLAID_UNIMPLEMENTED       12   /* not in this build, or no plug-in for it */
#define INLAID_INTERNAL            13
#define INLAID_UNAVAILABLE         14   /* may work later: peer, device or library missing now */
#define INLAID_DATA_LOSS           15   /* checksum mismatch, truncated or inconsistent file */
#define INLAID_UNAUTHENTICATED     16

typedef struct inlaid_error inlaid_error;
/* Code of the error; INLAID_OK for NULL. [any thread] */
INLAID_API inlaid_code inlaid_error_code(const inlaid_error *e) INLAID_NOEXCEPT;
/* One-line message; borrowed from e; "" for NULL. [any thread] */
INLAID_API const char *inlaid_error_message(const inlaid_error *e) INLAID_NOEXCEPT;
/* JSON object with machine-readable context (config path, rank, file, errno, ...); borrowed from e; "{}" for NULL
 * or when there is nothing to add. [any thread] */
INLAID_API const char *inlaid_error_details(const inlaid_error *e) INLAID_NOEXCEPT;
/* Releases e. The out-of-memory error is a static immortal object; releasing it does nothing. [any thread] */
INLAID_API void inlaid_error_release(inlaid_error *e) INLAID_NOEXCEPT;

/* ---- 2. owned bytes out --------------------------------------------------------------------------------- */
typedef struct inlaid_buffer inlaid_buffer;
/* First byte; borrowed from b; there is always one NUL past the end, so text can be used as a C string. NULL for
 * NULL. Immutable, aligned for int32_t. [any thread] */
INLAID_API const void *inlaid_buffer_data(const inlaid_buffer *b) INLAID_NOEXCEPT;
/* Number of bytes without the final NUL; 0 for NULL. [any thread] */
INLAID_API uint64_t inlaid_buffer_size(const inlaid_buffer *b) INLAID_NOEXCEPT;
/* Releases b and the bytes. */
INLAID_API void inlaid_buffer_release(inlaid_buffer *b) INLAID_NOEXCEPT;

/* ---- 3. runtime: no process globals, everything hangs off this ------------------------------------------ */
typedef struct inlaid_runtime inlaid_runtime;
typedef struct inlaid_allocator inlaid_allocator;   /* defined in the plug-in header */
typedef struct inlaid_log_sink inlaid_log_sink;     /* defined in the plug-in header */

/* Public structs start with struct_size = sizeof as the caller compiled it; always fill them with the _INIT macro.
 * The library reads min(caller's size, its own size) and defaults the rest. New fields come only at the end. */
typedef struct inlaid_runtime_options {
  uint32_t struct_size;
  int32_t cpu_threads;                     /* 0 = library chooses; the pool never exceeds this */
  const inlaid_allocator *host_allocator;  /* NULL = malloc family; copied, its user must outlive the runtime */
  const inlaid_log_sink *log_sink;         /* NULL = silent; copied, its user must outlive the runtime */
  const char *settings_json;               /* see below; NULL = {} */
  const void *next;                        /* reserved for chained extension structs; must be NULL */
} inlaid_runtime_options;
#define INLAID_RUNTIME_OPTIONS_INIT { (uint32_t)sizeof(inlaid_runtime_options), 0, NULL, NULL, NULL, NULL }

/* settings_json: {"memory_limit": bytes of all buffers, "disk_limit": bytes of all files that the runtime writes and of the output
 * folders of its jobs, "wall_time_limit": seconds that a run may last, "zero_memory": true = buffers are filled with zeros
 * before their memory is given back, "cpu_level": "portable" | "avx2" | "avx512"}. The limits are hard: what would exceed
 * memory_limit or disk_limit is RESOURCE_EXHAUSTED before a byte is taken or written, and the last checkpoint stays; a run
 * whose time is up saves the last whole step and ends as stopped. */
/* Creates a runtime (new): thread pool, kernels, log and settings. options NULL = all defaults. No environment variable
 * is read. Several runtimes with different settings may live in one process. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_runtime_create(const inlaid_runtime_options *options,
                                                              inlaid_runtime **out) INLAID_NOEXCEPT;
/* JSON (new): versions, kernels in use, thread count, limits, bytes on disk that count under disk_limit, and bytes of memory in
 * use and at the peak per category. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_runtime_describe(inlaid_runtime *rt,
                                                                inlaid_buffer **out_json) INLAID_NOEXCEPT;
/* Cancels all runs and joins every SDK thread. Explicit, because releases never block. On DEADLINE_EXCEEDED the
 * shutdown has begun and may be called again; afterwards work on children is FAILED_PRECONDITION. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_runtime_shutdown(inlaid_runtime *rt,
                                                                int64_t timeout_ms) INLAID_NOEXCEPT;
/* Drops the caller's reference; the runtime dies with its last child. */
INLAID_API void inlaid_runtime_release(inlaid_runtime *rt) INLAID_NOEXCEPT;

typedef struct inlaid_cancel inlaid_cancel;
/* Cancellation token (new). One token may be passed to many calls; once triggered it stays triggered. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_cancel_create(inlaid_cancel **out) INLAID_NOEXCEPT;
/* One atomic store and nothing else; async-signal-safe. Calls using the token return CANCELLED at the next check
 * (between kernel calls). [any thread] */
INLAID_API void inlaid_cancel_trigger(inlaid_cancel *c) INLAID_NOEXCEPT;
/* Releases the token; not async-signal-safe. */
INLAID_API void inlaid_cancel_release(inlaid_cancel *c) INLAID_NOEXCEPT;

/* ---- 4. communicator ------------------------------------------------------------------------------------ */
/* The ranks under which a model is materialised. This version trains on one rank: pass NULL wherever a communicator is
 * taken. */
typedef struct inlaid_comm inlaid_comm;

/* ---- 5. configuration: JSON in, canonical JSON out, strict ---------------------------------------------- */
typedef struct inlaid_config inlaid_config;
/* Parses and validates a job's configuration (new). Relative paths are made absolute against folder (NULL = as they
 * are). The error names the full path of the offending key and the nearest valid key. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_config_parse(const char *json, const char *folder,
                                                            inlaid_config **out) INLAID_NOEXCEPT;
/* Sets one value by path ("optim.learning_rate") and validates again; on failure c is unchanged. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_config_set(inlaid_config *c, const char *path,
                                                          const char *json_value) INLAID_NOEXCEPT;
/* Canonical JSON (new): defaults filled in, keys in fixed order; equal configurations give equal bytes. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_config_to_json(const inlaid_config *c,
                                                              inlaid_buffer **out) INLAID_NOEXCEPT;
/* JSON Schema (new) of everything inlaid_config_parse accepts. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_config_schema(inlaid_buffer **out_json_schema) INLAID_NOEXCEPT;
/* JSON (new): predicted peak memory per category, floating-point operations, and refusals with their reasons, before the
 * job allocates anything. A refusal is content of the report ("refused"); creating the job then fails with that reason. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_config_plan(inlaid_runtime *rt, const inlaid_config *c,
                                                           inlaid_buffer **out_json) INLAID_NOEXCEPT;
/* Releases c; jobs and trainers made from it have their own copy. */
INLAID_API void inlaid_config_release(inlaid_config *c) INLAID_NOEXCEPT;

/* ---- 6. tokenizer and chat template --------------------------------------------------------------------- */
/* All byte inputs are (const void *, uint64_t) pairs so that a binding needs one conversion for them. Token ids are
 * int32_t in host byte order. A tokenizer is immutable: its functions are [any thread]. */
typedef struct inlaid_tokenizer inlaid_tokenizer;
/* Opens the tokenizer (and chat template, if there is one) of a model folder, GGUF file or tokenizer.json (new).
 * NOT_FOUND, DATA_LOSS. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_tokenizer_open(inlaid_runtime *rt, const char *path,
                                                              inlaid_tokenizer **out) INLAID_NOEXCEPT;
/* Token ids (new) of bytes bytes of text, which may contain NUL. add_special 1 = with what the tokenizer puts around a
 * text (BOS and the like); special tokens written in the text become their ids. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_tokenizer_encode(inlaid_tokenizer *t, const void *utf8, uint64_t bytes,
                                                                int32_t add_special,
                                                                inlaid_buffer **out_int32) INLAID_NOEXCEPT;
/* Text (new) of bytes / 4 ids; INVALID_ARGUMENT if bytes is no multiple of 4 or an id is outside the vocabulary.
 * skip_special 1 = without special tokens. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_tokenizer_decode(inlaid_tokenizer *t, const void *int32_ids,
                                                                uint64_t bytes, int32_t skip_special,
                                                                inlaid_buffer **out_utf8) INLAID_NOEXCEPT;
/* Renders a chat with the model's template. messages_json: [{"role": "user", "content": "..."}, ...]; options_json (may be
 * NULL): {"add_generation_prompt": bool, "extra": {variables of the template}}. Result (new): {"text": "...", "ids": [...],
 * "spans": [{"message": 1, "begin": byte, "end": byte}, ...]}: the bytes of the text that each message's content became, with
 * an assistant's end-of-turn marker included (absent with add_generation_prompt). FAILED_PRECONDITION without a
 * template. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_tokenizer_render_chat(inlaid_tokenizer *t, const char *messages_json,
                                                                     const char *options_json,
                                                                     inlaid_buffer **out_json) INLAID_NOEXCEPT;
/* Number of ids, added tokens included; 0 for NULL. */
INLAID_API uint32_t inlaid_tokenizer_vocab_size(const inlaid_tokenizer *t) INLAID_NOEXCEPT;
/* Releases t; decoders keep it alive. */
INLAID_API void inlaid_tokenizer_release(inlaid_tokenizer *t) INLAID_NOEXCEPT;

/* Decodes ids one at a time and gives text out only when it is final (whole characters). */
typedef struct inlaid_decoder inlaid_decoder;
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_decoder_create(inlaid_tokenizer *t, int32_t skip_special,
                                                              inlaid_decoder **out) INLAID_NOEXCEPT;
/* Text (new) that became final with this id; often empty. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_decoder_push(inlaid_decoder *d, int32_t id,
                                                            inlaid_buffer **out_utf8) INLAID_NOEXCEPT;
/* The rest (new), at the end of the sequence; all texts together equal inlaid_tokenizer_decode of all ids. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_decoder_finish(inlaid_decoder *d,
                                                              inlaid_buffer **out_utf8) INLAID_NOEXCEPT;
INLAID_API void inlaid_decoder_release(inlaid_decoder *d) INLAID_NOEXCEPT;

/* ---- 7. model and adapters ------------------------------------------------------------------------------ */
typedef struct inlaid_model inlaid_model;
typedef struct inlaid_adapter inlaid_adapter;
struct DLManagedTensorVersioned;   /* DLPack, major version 1; another major is INVALID_ARGUMENT */

/* Freshly initialised model (new) from model.config of c, seeded by train.seed. RESOURCE_EXHAUSTED if it cannot fit. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_model_create(inlaid_runtime *rt, const inlaid_config *c,
                                                            inlaid_comm *comm_or_null,
                                                            inlaid_model **out) INLAID_NOEXCEPT;
/* Model (new) from a Hugging Face folder or a GGUF file. json (may be NULL): {"weights_dtype": "f32" | "bf16" | "f16" |
 * "as_stored", "tokenizer": path, "chat_template": text}. NOT_FOUND, DATA_LOSS naming the tensor, UNIMPLEMENTED naming the
 * key of config.json or the tensor type. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_model_load(inlaid_runtime *rt, const char *path, const char *json,
                                                          inlaid_comm *comm_or_null,
                                                          inlaid_model **out) INLAID_NOEXCEPT;
/* Opens what training made, whatever form it has: output folder of a job, checkpoint, PEFT folder, Hugging Face folder or
 * GGUF file. *out_adapter is NULL when there is none. json as in inlaid_model_load, and "checkpoint": "latest" (the default) or
 * "best", for an output folder. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_result_open(inlaid_runtime *rt, const char *path, const char *json,
                                                           inlaid_comm *comm_or_null, inlaid_model **out_model,
                                                           inlaid_adapter **out_adapter) INLAID_NOEXCEPT;
/* Writes the model, with the adapter merged into it if one is given. json: {"format": "huggingface" | "gguf",
 * "dtype": "f32" | "bf16" | "f16", for GGUF also "q8_0" | "q4_0" | "q4_k"}; defaults huggingface and f32. In a GGUF vectors stay
 * f32, and with q4_k matrices whose rows are no multiple of 256 are q5_0 (of 32: f16), which a warning of the log counts.
 * INVALID_ARGUMENT naming the tensor whose rows are no multiple of 32, as q8_0 and q4_0 need. ALREADY_EXISTS. Written under a
 * temporary name, then renamed.
 * The written files are opened again and compared with m: the result is a certificate inside the export, see
 * inlaid_export_certificate. "data": {...}, the section of a configuration, adds the loss on its evaluation data.
 * INTERNAL, and nothing is left, if tokenizer or chat template do not come out the same. "certificate": false leaves all this
 * out: it takes two forward passes of a short text, and memory for the exported weights (RESOURCE_EXHAUSTED). */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_model_export(inlaid_model *m, inlaid_adapter *adapter_or_null,
                                                            const char *path, const char *json) INLAID_NOEXCEPT;
/* JSON (new): the certificate of an exported folder or GGUF file: {"inlaid_version", "format", "dtype", "logits": {"tokens",
 * "max_abs_difference", "max_abs", "same_top_token"}, "held_out": null | {"rows", "target_tokens", "loss", "loss_exported"},
 * "tokenizer": null | {"texts", "equal"}, "chat_template": null | {"conversations", "equal"}}; of a PEFT folder without the last
 * three. NOT_FOUND if there is none. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_export_certificate(inlaid_runtime *rt, const char *path,
                                                                  inlaid_buffer **out_json) INLAID_NOEXCEPT;
/* JSON (new): configuration, parameter counts, tensor table (name, dtype, shape). */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_model_describe(inlaid_model *m,
                                                              inlaid_buffer **out_json) INLAID_NOEXCEPT;
/* The model's tokenizer (new). FAILED_PRECONDITION if it came without. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_model_tokenizer(inlaid_model *m,
                                                               inlaid_tokenizer **out) INLAID_NOEXCEPT;
/* f32 host copy of a weight as a DLPack tensor (new; release it with its own deleter, from any thread). NOT_FOUND. */
INLAID_API INLAID_MUSTUSE inlaid_error *
inlaid_model_get_tensor(inlaid_model *m, const char *name, struct DLManagedTensorVersioned **out) INLAID_NOEXCEPT;
/* Drops the caller's reference; adapters, trainers and generators keep m alive. */
INLAID_API void inlaid_model_release(inlaid_model *m) INLAID_NOEXCEPT;

/* An adapter is its own handle on a shared, immutable base: several train at once on one resident model. */
/* Fresh adapter (new) from the adapter part of c, seeded by train.seed. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_adapter_create(inlaid_model *m, const inlaid_config *c,
                                                              inlaid_adapter **out) INLAID_NOEXCEPT;
/* Adapter (new) from a PEFT folder; DATA_LOSS naming every key that does not fit the base. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_adapter_load(inlaid_model *m, const char *path,
                                                            inlaid_adapter **out) INLAID_NOEXCEPT;
/* Writes a PEFT folder, with a certificate as inlaid_model_export does. ALREADY_EXISTS. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_adapter_save(inlaid_adapter *a, const char *path) INLAID_NOEXCEPT;
/* JSON (new): PEFT configuration, tensor table. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_adapter_describe(inlaid_adapter *a,
                                                                inlaid_buffer **out_json) INLAID_NOEXCEPT;
INLAID_API void inlaid_adapter_release(inlaid_adapter *a) INLAID_NOEXCEPT;

/* ---- 8. data: the SDK's loader, or the caller's batches ------------------------------------------------- */
typedef struct inlaid_dataset inlaid_dataset;
typedef struct inlaid_batch inlaid_batch;
/* Opens the data set of a configuration for a model (new): split "train" (data.train) or "eval" (data.eval or
 * data.eval_fraction). NOT_FOUND if the configuration has none. Immutable afterwards. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_dataset_open(inlaid_model *m, const inlaid_config *c, const char *split,
                                                            inlaid_dataset **out) INLAID_NOEXCEPT;
/* JSON (new): rows used, truncated, held out, refused and dropped with file, row and reason; tokens and targets. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_dataset_report(inlaid_dataset *d,
                                                              inlaid_buffer **out_json) INLAID_NOEXCEPT;
/* Number of samples; 0 for NULL. [any thread] */
INLAID_API uint64_t inlaid_dataset_size(const inlaid_dataset *d) INLAID_NOEXCEPT;
/* JSON (new) of one sample: {"row": n, "ids": [...], "targets": [...]}, -100 where nothing is to be learnt. OUT_OF_RANGE. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_dataset_sample(inlaid_dataset *d, uint64_t index,
                                                              inlaid_buffer **out_json) INLAID_NOEXCEPT;
/* Drops the caller's reference; a trainer that uses d keeps it alive. */
INLAID_API void inlaid_dataset_release(inlaid_dataset *d) INLAID_NOEXCEPT;

/* Empty batch (new): one micro-batch of the caller's own data, for inlaid_trainer_accumulate. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_batch_create(inlaid_batch **out) INLAID_NOEXCEPT;
/* Adds a named host tensor of int32 or int64, one dimension, contiguous. Names: "tokens" [rows]; "targets" [rows], the id to
 * predict at each row, -100 for none; optional "cu_seqlens" [documents + 1], the boundaries of documents (default: one
 * document). Takes t on success only (R4); its data is copied and its deleter runs inside this call. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_batch_add(inlaid_batch *b, const char *name,
                                                         struct DLManagedTensorVersioned *t) INLAID_NOEXCEPT;
/* The same from plain memory: bytes / 4 values of int32, copied. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_batch_add_int32(inlaid_batch *b, const char *name, const void *int32_values,
                                                               uint64_t bytes) INLAID_NOEXCEPT;
INLAID_API void inlaid_batch_release(inlaid_batch *b) INLAID_NOEXCEPT;

/* ---- 9. trainer: one step at a time --------------------------------------------------------------------- */
typedef struct inlaid_trainer inlaid_trainer;
typedef struct inlaid_event inlaid_event;
/* Trainer (new) for m, or for an adapter on it; allocates gradients and optimizer state. One micro-batch can hold
 * train.micro_batch_tokens tokens. FAILED_PRECONDITION if m's own weights are being trained by another trainer. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_trainer_create(inlaid_model *m, inlaid_adapter *adapter_or_null,
                                                              const inlaid_config *c,
                                                              inlaid_trainer **out) INLAID_NOEXCEPT;
/* Attaches the training data; the trainer adds its own reference. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_trainer_set_dataset(inlaid_trainer *t,
                                                                   inlaid_dataset *d) INLAID_NOEXCEPT;
/* One whole optimizer step on the next micro-batches of the training data; event (new) of kind STEP. After CANCELLED
 * everything is as before the step. OUT_OF_RANGE when all steps are done. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_trainer_step(inlaid_trainer *t, inlaid_cancel *c_or_null,
                                                            inlaid_event **out) INLAID_NOEXCEPT;
/* Forward and backward of one micro-batch; adds to the gradients; event (new) of kind STEP with the sums of this
 * micro-batch. After CANCELLED all gradients accumulated since the last apply are dropped. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_trainer_accumulate(inlaid_trainer *t, const inlaid_batch *b,
                                                                  inlaid_cancel *c_or_null,
                                                                  inlaid_event **out) INLAID_NOEXCEPT;
/* Clipping, optimizer and schedule on the accumulated gradients; event (new) of kind STEP. accumulate x k + apply is bit for
 * bit one step of k micro-batches. FAILED_PRECONDITION if nothing was accumulated, or for a gradient that is not finite
 * (naming the parameter; nothing is changed then). */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_trainer_apply(inlaid_trainer *t, inlaid_event **out) INLAID_NOEXCEPT;
/* Changes optim.learning_rate, optim.weight_decay or optim.max_grad_norm for all steps to come; json is the value. A
 * checkpoint carries the change. FAILED_PRECONDITION for another key, INVALID_ARGUMENT for a value out of range. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_trainer_set(inlaid_trainer *t, const char *key,
                                                           const char *json) INLAID_NOEXCEPT;
/* Evaluates on d; event (new) of kind EVAL. Changes nothing. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_trainer_evaluate(inlaid_trainer *t, inlaid_dataset *d,
                                                                inlaid_cancel *c_or_null,
                                                                inlaid_event **out) INLAID_NOEXCEPT;
/* Drops the caller's reference; a run keeps t alive. */
INLAID_API void inlaid_trainer_release(inlaid_trainer *t) INLAID_NOEXCEPT;

/* ---- 10. forward and backward: losses of your own ------------------------------------------------------- */
/* One forward pass whose outputs you turn into a loss of your own (reinforcement learning, distillation, contrastive losses):
 *
 *   inlaid_trainer_forward(trainer, batch, NULL, NULL, &pass);            log_probs
 *   const float *log_probs = inlaid_pass_data(pass, "log_probs");         ... your loss, and its gradient d
 *   inlaid_pass_set_gradient_f32(pass, "log_probs", d, rows * 4);
 *   inlaid_backward(pass, 0, NULL);                                       adds to the trainer's gradients
 *   inlaid_pass_release(pass);                                            ... more passes, then
 *   inlaid_trainer_apply(trainer, &event);                                clipping, optimizer, schedule
 *
 * Outputs, all float32 in host memory, one row for each row of the batch:
 *   "log_probs"      [rows]               log-probability of the row's target; 0 without one. Never holds all logits at once.
 *   "logits"         [rows, vocabulary]   after the model's soft cap, if it has one
 *   "hidden_states"  [rows, hidden size]  after the final norm: what the output head reads
 *
 * Normalisation. The gradients are taken as they are: nothing is divided by tokens, rows or documents, unless you give
 * inlaid_backward a count. inlaid_trainer_apply divides the sum of everything added since the last one by the sum of the counts,
 * where inlaid_trainer_accumulate counts its target tokens; a sum of 0 divides by nothing.
 *
 * Memory, counted as activations: outputs have the size of the batch. A pass of a trainer also holds the activations of one full
 * micro-batch until inlaid_backward or its release. Several passes may be in flight. */
typedef struct inlaid_pass inlaid_pass;
/* Forward of one micro-batch of t (new), with dropout as in inlaid_trainer_accumulate, for one inlaid_backward. json (may be
 * NULL): {"outputs": ["log_probs", ...]}, by default log_probs alone; a batch needs "targets" for log_probs only. INVALID_ARGUMENT
 * for a batch that does not fit, FAILED_PRECONDITION while a run uses t, RESOURCE_EXHAUSTED. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_trainer_forward(inlaid_trainer *t, const inlaid_batch *b, const char *json,
                                                               inlaid_cancel *c_or_null,
                                                               inlaid_pass **out) INLAID_NOEXCEPT;
/* Forward of m (with an adapter or NULL) without gradients (new): no dropout, and nothing but the outputs is kept. For reference
 * policies, teachers, scores. json and errors as above. Do not call it while the weights of m are being trained. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_forward(inlaid_model *m, inlaid_adapter *adapter_or_null,
                                                       const inlaid_batch *b, const char *json,
                                                       inlaid_cancel *c_or_null, inlaid_pass **out) INLAID_NOEXCEPT;
/* An output as a DLPack tensor (new; release it with its own deleter, from any thread). It shares the pass's memory, without a
 * copy, and keeps it alive on its own. You may write into it. NOT_FOUND for an output that was not asked for, INVALID_ARGUMENT for
 * a name that is none. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_pass_output(inlaid_pass *p, const char *output,
                                                           struct DLManagedTensorVersioned **out) INLAID_NOEXCEPT;
/* First value of an output; borrowed from p; NULL for NULL, and for an output that is not there. [any thread] */
INLAID_API const float *inlaid_pass_data(const inlaid_pass *p, const char *output) INLAID_NOEXCEPT;
/* Number of bytes of an output; 0 where inlaid_pass_data gives NULL. [any thread] */
INLAID_API uint64_t inlaid_pass_size(const inlaid_pass *p, const char *output) INLAID_NOEXCEPT;
/* The gradient of your loss with respect to an output: float32, host memory, contiguous, of the output's shape; else
 * INVALID_ARGUMENT. Rows without a target have no gradient of log_probs: what is given for them is ignored. Takes t on success only
 * (R4); it is read, without a copy, by inlaid_backward, and its deleter runs there or in the release of p, or here when a second
 * one replaces it. NOT_FOUND as inlaid_pass_output; FAILED_PRECONDITION after inlaid_backward. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_pass_set_gradient(inlaid_pass *p, const char *output,
                                                                 struct DLManagedTensorVersioned *t) INLAID_NOEXCEPT;
/* The same from plain memory: bytes / 4 values of float, copied. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_pass_set_gradient_f32(inlaid_pass *p, const char *output,
                                                                     const void *f32_values,
                                                                     uint64_t bytes) INLAID_NOEXCEPT;
/* Backward from the gradients that were set; outputs without one count as having gradient 0. Adds to the trainer's gradients; the
 * next inlaid_trainer_apply does the step. count: 0, or what goes to the normaliser (above); negative, infinite or NaN is
 * INVALID_ARGUMENT. FAILED_PRECONDITION: a second time; a pass of inlaid_forward; no gradient set; the weights have changed since
 * (apply, step, restore); a run uses the trainer. After CANCELLED all gradients accumulated since the last apply are dropped. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_backward(inlaid_pass *p, double count,
                                                        inlaid_cancel *c_or_null) INLAID_NOEXCEPT;
/* Releases p, with what it held for inlaid_backward; tensors of inlaid_pass_output live on. */
INLAID_API void inlaid_pass_release(inlaid_pass *p) INLAID_NOEXCEPT;

/* ---- 11. background run: pulled events, no callbacks on foreign threads --------------------------------- */
typedef struct inlaid_run inlaid_run;
/* Kinds of events. Unknown kinds must be skipped. */
#define INLAID_EVENT_STEP       1
#define INLAID_EVENT_EVAL       2
#define INLAID_EVENT_CHECKPOINT 3
#define INLAID_EVENT_WARNING    4
#define INLAID_EVENT_STATE      5   /* starting running paused saving stopping done stopped failed cancelled */
#define INLAID_EVENT_DONE       6
#define INLAID_EVENT_SAMPLE     7   /* an answer to one of logging.sample_prompts; the prompt is in the event's JSON */
#define INLAID_EVENT_CHANGE     8   /* a key that was changed while training, with its value */

/* Trains on an SDK thread (new) until all steps are done. json (may be NULL): {"until": step, "eval_steps": n,
 * "save_steps": n, "save_total_limit": n, "checkpoint_dir": path, "keep_best": n, "early_stopping_patience": n,
 * "early_stopping_threshold": x}, as the keys of the same names in a configuration. The trainer is busy until the run has
 * ended: using it is FAILED_PRECONDITION. eval_data may be NULL. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_run_start(inlaid_trainer *t, inlaid_dataset *eval_data_or_null,
                                                         const char *json, inlaid_run **out) INLAID_NOEXCEPT;
/* Next event (new), or success with a NULL event on timeout. The queue is bounded: step events may be dropped when nobody
 * pulls (their seq shows the gap), others never are. DONE is delivered once, then OUT_OF_RANGE. [any thread] */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_run_next(inlaid_run *r, int64_t timeout_ms,
                                                        inlaid_event **out) INLAID_NOEXCEPT;
/* Asks for "pause", "resume", "save", "eval" or "stop" (after the current step; saves), served between steps; the answer is
 * an event. INVALID_ARGUMENT for another verb. [any thread] */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_run_request(inlaid_run *r, const char *verb) INLAID_NOEXCEPT;
/* inlaid_trainer_set before the next step; the answer is an event. Errors as there, at once. [any thread] */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_run_set(inlaid_run *r, const char *key,
                                                       const char *json) INLAID_NOEXCEPT;
/* Ends the run as soon as possible, in any phase, without saving: two atomic stores, async-signal-safe. [any thread] */
INLAID_API void inlaid_run_cancel(inlaid_run *r) INLAID_NOEXCEPT;
/* Waits for the end and returns the run's own error: NULL if it finished or was stopped (by a request or because its time was
 * up, which DONE says), CANCELLED if cancelled.
 * DEADLINE_EXCEEDED on timeout. Repeatable. [any thread] */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_run_join(inlaid_run *r, int64_t timeout_ms) INLAID_NOEXCEPT;
/* Cancels if it is still going, detaches, never blocks. */
INLAID_API void inlaid_run_release(inlaid_run *r) INLAID_NOEXCEPT;

/* INLAID_EVENT_*; 0 for NULL. [any thread, like all event getters] */
INLAID_API int32_t inlaid_event_kind(const inlaid_event *e) INLAID_NOEXCEPT;
/* Optimizer steps done when the event happened. */
INLAID_API uint64_t inlaid_event_step(const inlaid_event *e) INLAID_NOEXCEPT;
/* Sequence number within the run; a gap shows dropped events. */
INLAID_API uint64_t inlaid_event_seq(const inlaid_event *e) INLAID_NOEXCEPT;
/* Number of metrics. */
INLAID_API uint32_t inlaid_event_metric_count(const inlaid_event *e) INLAID_NOEXCEPT;
/* Name of metric i; borrowed from e; NULL past the end. */
INLAID_API const char *inlaid_event_metric_name(const inlaid_event *e, uint32_t i) INLAID_NOEXCEPT;
/* Value of metric i; NaN past the end. */
INLAID_API double inlaid_event_metric_value(const inlaid_event *e, uint32_t i) INLAID_NOEXCEPT;
/* Value of a metric by name; NaN if the event has none of that name. */
INLAID_API double inlaid_event_metric(const inlaid_event *e, const char *name) INLAID_NOEXCEPT;
/* State name, warning, checkpoint folder, answer, changed key, or how the run ended; "" for other kinds; borrowed from e. */
INLAID_API const char *inlaid_event_text(const inlaid_event *e) INLAID_NOEXCEPT;
/* The whole event as JSON; borrowed from e. */
INLAID_API const char *inlaid_event_json(const inlaid_event *e) INLAID_NOEXCEPT;
/* Releases e. */
INLAID_API void inlaid_event_release(inlaid_event *e) INLAID_NOEXCEPT;

/* ---- 12. job: everything from one configuration --------------------------------------------------------- */
typedef struct inlaid_job inlaid_job;
/* Job (new): opens model, adapter, data and trainer, and writes job.json, data_report.json and audit.json into output_dir, where
 * events.jsonl and checkpoints/ follow. ALREADY_EXISTS if output_dir holds a job. A failure leaves no new folder behind. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_job_create(inlaid_runtime *rt, const inlaid_config *c,
                                                          inlaid_job **out) INLAID_NOEXCEPT;
/* Job (new) of an output folder, standing where its latest checkpoint left it; training goes on bit for bit. NOT_FOUND;
 * FAILED_PRECONDITION naming every file of model, tokenizer, template, adapter or data that changed, or while a run trains in
 * the folder. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_job_resume(inlaid_runtime *rt, const char *output_dir,
                                                          inlaid_job **out) INLAID_NOEXCEPT;
/* JSON (new): the jobs whose output folders lie in dir, with their states: created, running, interrupted (its process was
 * killed), stopped, cancelled, failed, done, damaged; steps; latest and best checkpoint. What a restarted host resumes by.
 * NOT_FOUND. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_job_list(inlaid_runtime *rt, const char *dir,
                                                        inlaid_buffer **out_json) INLAID_NOEXCEPT;
/* Trains in the background (new run), as the configuration says. FAILED_PRECONDITION while another run, of this process or
 * another one, trains in the same output folder. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_job_start(inlaid_job *j, inlaid_run **out) INLAID_NOEXCEPT;
/* The job's trainer (new). */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_job_trainer(inlaid_job *j, inlaid_trainer **out) INLAID_NOEXCEPT;
/* The job's model, and its adapter or NULL (new). */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_job_model(inlaid_job *j, inlaid_model **out_model,
                                                         inlaid_adapter **out_adapter) INLAID_NOEXCEPT;
/* JSON (new): parameters, rows, steps done and in all, checkpoint from which it was resumed. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_job_describe(inlaid_job *j, inlaid_buffer **out_json) INLAID_NOEXCEPT;
/* HTML page (new) about the job of an output folder, whether it still trains or not: curves, samples, data, configuration.
 * One self-contained file. NOT_FOUND. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_job_report(inlaid_runtime *rt, const char *output_dir,
                                                          inlaid_buffer **out_html) INLAID_NOEXCEPT;
/* JSON (new): checks the hashes of everything that audit.json of an output folder records (the files that the job was made from,
 * the files that it wrote) and every checkpoint. {"ok": bool, "problems": [text, ...], "inputs": n, "outputs": n,
 * "checkpoints": n, "tensors": n, "bytes": n}. What changed or is damaged is content of the report, not an error. NOT_FOUND. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_job_verify(inlaid_runtime *rt, const char *output_dir,
                                                          inlaid_buffer **out_json) INLAID_NOEXCEPT;
/* Drops the caller's reference; a run keeps what it needs alive. */
INLAID_API void inlaid_job_release(inlaid_job *j) INLAID_NOEXCEPT;

/* ---- 13. checkpoints ------------------------------------------------------------------------------------ */
/* Writes trainer state to dir, which must not exist (ALREADY_EXISTS). The checkpoint exists only once its folder has been
 * renamed into place. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_checkpoint_save(inlaid_trainer *t, const char *dir,
                                                               inlaid_cancel *c_or_null) INLAID_NOEXCEPT;
/* Restores trainer state; training continues bit-equal to a run without interruption. Everything is checked before anything
 * is changed: FAILED_PRECONDITION for a newer format or for another model or data set, DATA_LOSS for damage. If a shard turns
 * out damaged later, t is good only for another restore. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_checkpoint_restore(inlaid_trainer *t, const char *dir) INLAID_NOEXCEPT;
/* Manifest (new): the file's bytes as they are, or with as_json = 1 a JSON rendering. Reads no shard. dir is a checkpoint, or the
 * output folder of a job, which means its latest one. NOT_FOUND, DATA_LOSS. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_checkpoint_manifest(inlaid_runtime *rt, const char *dir,
                                                                   int32_t as_json,
                                                                   inlaid_buffer **out) INLAID_NOEXCEPT;
/* Checks sizes and checksums of every shard; JSON report (new). Damage found is content of the report, not an error. dir as in
 * inlaid_checkpoint_manifest. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_checkpoint_verify(inlaid_runtime *rt, const char *dir,
                                                                 inlaid_buffer **out_json) INLAID_NOEXCEPT;

/* ---- 14. evaluation, generation ------------------------------------------------------------------------- */
typedef struct inlaid_generator inlaid_generator;
/* Evaluates m (with an adapter or NULL) on d; event (new) of kind EVAL with the metrics. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_evaluate(inlaid_model *m, inlaid_adapter *adapter_or_null,
                                                        inlaid_dataset *d, inlaid_cancel *c_or_null,
                                                        inlaid_event **out) INLAID_NOEXCEPT;
/* Generator (new) with its own key/value cache. json (may be NULL): {"max_new_tokens": 128, "max_length": n,
 * "temperature": 0 (greedy), "top_k": 0 (all), "top_p": 1, "seed": 42, "stop": ["text", ...]}. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_generator_create(inlaid_model *m, inlaid_adapter *adapter_or_null,
                                                                const char *json,
                                                                inlaid_generator **out) INLAID_NOEXCEPT;
/* Starts a new sequence from bytes / 4 token ids (bytes a multiple of 4); the ids are copied. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_generator_prompt(inlaid_generator *g, const void *int32_ids,
                                                                uint64_t bytes) INLAID_NOEXCEPT;
/* Next token: its id, the text (new) that became final with it, and *out_done = 1 with the last one, then OUT_OF_RANGE. Stop
 * tokens and stop texts are not part of the text. Greedy output equals plain forward passes. FAILED_PRECONDITION before the
 * first prompt. */
INLAID_API INLAID_MUSTUSE inlaid_error *inlaid_generator_next(inlaid_generator *g, inlaid_cancel *c_or_null,
                                                              int32_t *out_id, inlaid_buffer **out_utf8,
                                                              int32_t *out_done) INLAID_NOEXCEPT;
/* Releases g. */
INLAID_API void inlaid_generator_release(inlaid_generator *g) INLAID_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif /* INLAID_H */
