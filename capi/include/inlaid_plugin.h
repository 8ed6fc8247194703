/* inlaid_plugin.h - what a C embedder may plug into Inlaid: host allocator, log sink.
 *
 * Bindings of managed languages do not need this header.
 *
 * Rules, on top of those in inlaid.h:
 *
 *  P1  Fill every struct from its _INIT macro. The library copies the struct during the call that receives it;
 *      `user` and everything behind it stay valid until the runtime is gone. New fields come only at the end; the
 *      library reads min(caller's struct_size, its own) and treats missing function pointers as NULL.
 *  P2  A callback must not call back into Inlaid; it must not throw, unwind, panic or longjmp through the library.
 */
#ifndef INLAID_PLUGIN_H
#define INLAID_PLUGIN_H
#include "inlaid.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- host allocator ------------------------------------------------------------------------------------- */
/* All fields valid for the runtime's life. Called from any thread, concurrently. Also the hook with which tests make
 * the n-th allocation fail. */
struct inlaid_allocator {
  uint32_t struct_size;
  uint32_t reserved0; /* 0 */
  void *user;
  /* bytes > 0, align a power of two; NULL = out of memory, which becomes RESOURCE_EXHAUSTED. */
  void *(*alloc)(void *user, uint64_t bytes, uint64_t align);
  /* p and bytes exactly as given out; never NULL. */
  void (*free)(void *user, void *p, uint64_t bytes);
};
#define INLAID_ALLOCATOR_INIT { (uint32_t)sizeof(inlaid_allocator), 0, NULL, NULL, NULL }

/* ---- log sink ------------------------------------------------------------------------------------------- */
/* Levels. */
#define INLAID_LOG_TRACE   0
#define INLAID_LOG_DEBUG   1
#define INLAID_LOG_INFO    2
#define INLAID_LOG_WARNING 3
#define INLAID_LOG_ERROR   4
/* May be called from any SDK thread, concurrently; must be quick. Without a sink the library is silent: it never
 * writes to stdout or stderr. */
struct inlaid_log_sink {
  uint32_t struct_size;
  int32_t min_level; /* records below this level are not formatted at all */
  void *user;
  /* utf8 has size bytes and is not NUL-terminated; component is NUL-terminated; both are valid during the call. */
  void (*write)(void *user, int32_t level, const char *component, const char *utf8, uint64_t size);
};
#define INLAID_LOG_SINK_INIT { (uint32_t)sizeof(inlaid_log_sink), INLAID_LOG_INFO, NULL, NULL }

#ifdef __cplusplus
}
#endif
#endif /* INLAID_PLUGIN_H */
