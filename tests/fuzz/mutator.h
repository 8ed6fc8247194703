// Changes an input so that it stays near the formats that parsers know.
//
// Random bytes rarely pass a magic number or a quotation mark. So most changes keep the surroundings: a bit, a byte, a number
// at a boundary (binary of 1 to 8 bytes, or decimal digits in text), a word of the format's dictionary, a piece that is
// moved, repeated or removed, a piece of another input. A pure function of the random numbers.
#ifndef INLAID_TESTS_FUZZ_MUTATOR_H_
#define INLAID_TESTS_FUZZ_MUTATOR_H_

#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace inlaid::fuzz {

class Mutator {
 public:
  // `dictionary`: words of the format. `corpus`: inputs to take pieces from; both outlive the mutator.
  Mutator(const std::vector<std::string>& dictionary, const std::vector<std::string>& corpus)
      : dictionary_(dictionary), corpus_(corpus) {}

  // One to some changes, mostly few; the result has at most `longest` bytes.
  std::string mutate(std::string input, std::mt19937_64& random, size_t longest) const;

 private:
  void change(std::string& input, std::mt19937_64& random) const;

  const std::vector<std::string>& dictionary_;
  const std::vector<std::string>& corpus_;
};

// A dictionary in libFuzzer's format: lines `"word"` or `name="word"`, with \\, \" and \xNN inside; `#` begins a comment.
std::vector<std::string> read_dictionary(const std::string& text);

}  // namespace inlaid::fuzz

#endif  // INLAID_TESTS_FUZZ_MUTATOR_H_
