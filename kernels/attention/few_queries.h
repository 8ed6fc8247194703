// Forward attention for documents with few queries, as in generation with a key/value cache.
//
// Problem: with one query, a vector of queries would be nearly empty. Idea: vectors along the features
// instead; kLanes keys at a time give one vector of scores (simd.h, sum_each), and the keys are cut into
// chunks of kChunkK so that one long document can use every thread. Each chunk leaves (max, sum, unnormalised
// output); a second pass combines the chunks in ascending order. Chunks before the window are left out. Cost: every
// key and value that is seen is read once per key head.
#ifndef INLAID_KERNELS_ATTENTION_FEW_QUERIES_H_
#define INLAID_KERNELS_ATTENTION_FEW_QUERIES_H_

#include "kernels/attention/documents.h"

namespace inlaid::kernels::INLAID_LEVEL {

constexpr int64_t kChunkK = 256;

struct FewQueries {
  Documents documents;
  int64_t* chunks;  // [documents + 1] chunks of the documents before
  int64_t* parts;   // [documents + 1] partial results of the documents before, per head: queries * chunks
  float* partial;   // [parts][heads][head_size + 2]: output, max, sum
};

// An upper limit of `parts` for any documents of the given rows. A document of one chunk has none; one with c
// >= 2 chunks has at most kFewQueries * c parts and more than (c - 1) kChunkK >= c kChunkK / 2 keys.
INLAID_INLINE int64_t most_parts(int64_t key_rows) {
  return kFewQueries * 2 * key_rows / kChunkK;
}

// Fills chunks and parts; a document of many queries has none.
void count_chunks(const FewQueries& few, int64_t window);

// Chunk `task / kv_heads` of key head `task % kv_heads`. A document of one chunk is finished by this.
void attend_chunk(const AttentionForwardArgs& args, const FewQueries& few, int64_t task);

// Finishes the documents of several chunks.
void combine_chunks(const Context& context, const AttentionForwardArgs& args, const FewQueries& few);

}  // namespace inlaid::kernels::INLAID_LEVEL

#endif  // INLAID_KERNELS_ATTENTION_FEW_QUERIES_H_
