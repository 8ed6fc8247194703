#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace inlaid::fuzz {
namespace {

constexpr uint64_t kNumbers[] = {0,          1,          2,          3,          7,          8,          16,         31,
                                 32,         64,         127,        128,        255,        256,        1000,       4096,
                                 32767,      32768,      65535,      65536,      0x7ffffff8, 0x7fffffff, 0x80000000, 0xfffffff0,
                                 0xffffffff, 1ull << 32, 1ull << 40, 1ull << 62, ~0ull >> 1, 1ull << 63, ~0ull - 7,  ~0ull};
constexpr std::string_view kDigits[] = {
    "0",    "-1",    "1",     "2",      "255",    "65536",      "2147483647", "2147483648",          "-2147483648",
    "1e400", "-1e400", "1e308", "1e-320", "0.5",   "4294967296", "1e18",       "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "18446744073709551615", "18446744073709551616", "1e19", "-0.0", "1.0", "null", "true", "\"\"", "[]", "{}"};

size_t below(std::mt19937_64& random, size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); }

// A range that is mostly short.
std::pair<size_t, size_t> piece(const std::string& input, std::mt19937_64& random) {
  const size_t begin = below(random, input.size());
  const size_t most = below(random, 4) == 0 ? input.size() - begin : std::min<size_t>(input.size() - begin, 16);
  return {begin, 1 + below(random, most)};
}

void binary_number(std::string& input, std::mt19937_64& random) {
  const size_t width = size_t{1} << below(random, 4);
  if (input.size() < width) return;
  const size_t at = below(random, input.size() - width + 1);
  uint64_t value = 0;
  if (below(random, 3) == 0) {  // the number that is there, a little changed
    std::memcpy(&value, input.data() + at, width);
    value += random() % 17 - 8;
  } else {
    value = kNumbers[below(random, std::size(kNumbers))] + random() % 3 - 1;
  }
  std::memcpy(input.data() + at, &value, width);
}

void decimal_number(std::string& input, std::mt19937_64& random) {
  const auto digit = [&](size_t i) { return i < input.size() && std::isdigit(static_cast<unsigned char>(input[i])); };
  size_t at = below(random, input.size());
  while (at < input.size() && !digit(at)) ++at;
  if (at >= input.size()) return;
  size_t end = at;
  while (digit(end) || (end < input.size() && end > at && (input[end] == '.' || input[end] == 'e'))) ++end;
  input.replace(at, end - at, kDigits[below(random, std::size(kDigits))]);
}

}  // namespace

void Mutator::change(std::string& input, std::mt19937_64& random) const {
  if (input.empty()) input.push_back(' ');
  const auto [begin, length] = piece(input, random);
  switch (below(random, 12)) {
    case 0:
      input[begin] = static_cast<char>(input[begin] ^ (1 << below(random, 8)));
      break;
    case 1:
      input[begin] = static_cast<char>(random());
      break;
    case 2:
    case 3:
      binary_number(input, random);
      break;
    case 4:
    case 5:
      decimal_number(input, random);
      break;
    case 6:
      input.erase(begin, length);
      break;
    case 7:  // repeat a piece, now and then often
      for (size_t n = below(random, 8) == 0 ? 64 : 1; n > 0; --n) input.insert(begin, input.substr(begin, length));
      break;
    case 8: {  // move a piece
      const std::string moved = input.substr(begin, length);
      input.erase(begin, length);
      input.insert(below(random, input.size() + 1), moved);
      break;
    }
    case 9:
    case 10: {  // a word of the format, inserted or in place of another piece
      if (dictionary_.empty()) break;
      const std::string& word = dictionary_[below(random, dictionary_.size())];
      input.replace(begin, below(random, 2) == 0 ? 0 : std::min(word.size(), input.size() - begin), word);
      break;
    }
    case 11: {  // a piece of another input
      const std::string& other = corpus_[below(random, corpus_.size())];
      if (other.empty()) break;
      const auto [from, count] = piece(other, random);
      if (below(random, 2) == 0) {
        input.replace(begin, length, other, from, count);
      } else {
        input.resize(begin);
        input.append(other, std::min(begin, other.size()));
      }
      break;
    }
  }
}

std::string Mutator::mutate(std::string input, std::mt19937_64& random, size_t longest) const {
  for (size_t n = 1 + below(random, size_t{1} << below(random, 5)); n > 0; --n) {
    change(input, random);
    if (input.size() > longest) input.resize(longest);
  }
  return input;
}

std::vector<std::string> read_dictionary(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    size_t i = line.find('"');
    if (i == line.npos || line.starts_with('#')) continue;
    std::string word;
    for (++i; i < line.size() && line[i] != '"'; ++i) {
      if (line[i] == '\\' && i + 3 < line.size() && line[i + 1] == 'x') {
        word += static_cast<char>(std::stoi(std::string(line.substr(i + 2, 2)), nullptr, 16));
        i += 3;
      } else {
        if (line[i] == '\\') ++i;
        word += line[i];
      }
    }
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace inlaid::fuzz
