#include "sdk/formats/gguf_value.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cstring>
#include <limits>

#include "sdk/base/error.h"

namespace inlaid::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF numbers are read as they lie in the file");

constexpr uint64_t kBuffer = uint64_t{1} << 20;
// Entries of one array. Vocabularies and merges have less than a million; elements take up to 32 times their
// bytes in memory.
constexpr uint64_t kMaxArray = uint64_t{1} << 24;

// Bytes of one element; of a string, its length field.
uint64_t least_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    default:
      return 8;
  }
}

GgufType checked_type(uint32_t id, const GgufCursor& cursor) {
  if (id > static_cast<uint32_t>(GgufType::f64)) {
    fail(Code::kDataLoss, cursor.path(), ": metadata type ", id, " before byte ", cursor.position(),
         " is unknown; the file is damaged");
  }
  return static_cast<GgufType>(id);
}

bool read_bool(GgufCursor& cursor) {
  const uint8_t byte = cursor.number<uint8_t>();
  if (byte > 1) {
    fail(Code::kDataLoss, cursor.path(), ": a boolean before byte ", cursor.position(), " is ", int{byte},
         ", neither 0 nor 1");
  }
  return byte != 0;
}

// Calls put(element) for `n` elements of a type, each widened as GgufValue holds it.
template <typename Put>
void read_elements(GgufCursor& cursor, GgufType type, uint64_t n, Put&& put) {
  for (uint64_t i = 0; i < n; ++i) {
    switch (type) {
      case GgufType::u8:
        put(uint64_t{cursor.number<uint8_t>()});
        break;
      case GgufType::u16:
        put(uint64_t{cursor.number<uint16_t>()});
        break;
      case GgufType::u32:
        put(uint64_t{cursor.number<uint32_t>()});
        break;
      case GgufType::u64:
        put(cursor.number<uint64_t>());
        break;
      case GgufType::i8:
        put(int64_t{cursor.number<int8_t>()});
        break;
      case GgufType::i16:
        put(int64_t{cursor.number<int16_t>()});
        break;
      case GgufType::i32:
        put(int64_t{cursor.number<int32_t>()});
        break;
      case GgufType::i64:
        put(cursor.number<int64_t>());
        break;
      case GgufType::f32:
        put(double{cursor.number<float>()});
        break;
      case GgufType::f64:
        put(cursor.number<double>());
        break;
      case GgufType::boolean:
        put(read_bool(cursor));
        break;
      case GgufType::string:
        put(cursor.text());
        break;
      case GgufType::array:
        INLAID_CHECK(false);
    }
  }
}

// To f32; what is too large becomes infinite.
float narrowed(double value) {
  if (value > FLT_MAX) return std::numeric_limits<float>::infinity();
  if (value < -FLT_MAX) return -std::numeric_limits<float>::infinity();
  return static_cast<float>(value);
}

template <typename T>
void append_element(std::string& out, GgufType type, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    append_text(out, value);
  } else {
    switch (type) {
      case GgufType::u8:
      case GgufType::i8:
      case GgufType::boolean:
        append_number(out, static_cast<uint8_t>(value));
        break;
      case GgufType::u16:
      case GgufType::i16:
        append_number(out, static_cast<uint16_t>(value));
        break;
      case GgufType::u32:
        append_number(out, static_cast<uint32_t>(value));
        break;
      case GgufType::i32:
        append_number(out, static_cast<int32_t>(value));
        break;
      case GgufType::f32:
        append_number(out, narrowed(static_cast<double>(value)));
        break;
      case GgufType::u64:
        append_number(out, static_cast<uint64_t>(value));
        break;
      case GgufType::i64:
        append_number(out, static_cast<int64_t>(value));
        break;
      case GgufType::f64:
        append_number(out, static_cast<double>(value));
        break;
      default:
        INLAID_CHECK(false);
    }
  }
}

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};

}  // namespace

const char* gguf_type_name(GgufType type) {
  static constexpr const char* kNames[] = {"u8",      "i8",     "u16",   "i16", "u32", "i32", "f32",
                                           "boolean", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<uint32_t>(type)];
}

void GgufCursor::take(std::span<std::byte> out) {
  if (out.size() > left()) {
    fail(Code::kDataLoss, path(), ": ends inside its header: ", out.size(), " bytes are needed at byte ",
         position_, ", ", left(), " are left; the file is cut short or damaged");
  }
  while (!out.empty()) {
    if (position_ < buffer_begin_ || position_ >= buffer_begin_ + buffer_.size()) {
      buffer_.resize(std::min(kBuffer, left()));
      buffer_begin_ = position_;
      file_.read_at(position_, buffer_);
    }
    const uint64_t offset = position_ - buffer_begin_;
    const uint64_t n = std::min<uint64_t>(out.size(), buffer_.size() - offset);
    std::memcpy(out.data(), buffer_.data() + offset, n);
    position_ += n;
    out = out.subspan(n);
  }
}

std::string GgufCursor::text() {
  const uint64_t length = count(1, "a text");
  std::string out(length, '\0');
  take(std::as_writable_bytes(std::span(out.data(), out.size())));
  return out;
}

uint64_t GgufCursor::count(uint64_t bytes_each, const char* what) {
  const uint64_t n = number<uint64_t>();
  if (n > left() / bytes_each) {
    fail(Code::kDataLoss, path(), ": ", what, " before byte ", position_, " claims ", n,
         " entries, more than the ", left(),
         " bytes that are left can hold; the file is cut short or damaged");
  }
  return n;
}

GgufValue GgufCursor::value() {
  GgufValue out;
  out.type = checked_type(number<uint32_t>(), *this);
  uint64_t n = 1;
  if (out.type == GgufType::array) {
    out.array = true;
    out.type = checked_type(number<uint32_t>(), *this);
    if (out.type == GgufType::array) {
      fail(Code::kUnimplemented, path(), ": an array of arrays in the metadata before byte ", position_,
           " is not supported");
    }
    n = count(least_bytes(out.type), "an array");
    if (n > kMaxArray) {
      fail(Code::kUnimplemented, path(), ": an array of ", n,
           " entries in the metadata is not supported; at most ", kMaxArray, " are");
    }
  }
  if (!out.array) {
    read_elements(*this, out.type, 1, [&](auto element) { out.data = std::move(element); });
    return out;
  }
  const auto read_as = [&](auto elements) {
    using Element = typename decltype(elements)::value_type;
    elements.reserve(n);
    read_elements(*this, out.type, n, [&](auto element) {
      if constexpr (std::is_same_v<decltype(element), Element>) elements.push_back(std::move(element));
    });
    out.data = std::move(elements);
  };
  switch (out.type) {
    case GgufType::u8:
    case GgufType::u16:
    case GgufType::u32:
    case GgufType::u64:
      read_as(std::vector<uint64_t>());
      break;
    case GgufType::i8:
    case GgufType::i16:
    case GgufType::i32:
    case GgufType::i64:
      read_as(std::vector<int64_t>());
      break;
    case GgufType::f32:
    case GgufType::f64:
      read_as(std::vector<double>());
      break;
    case GgufType::boolean:
      read_as(std::vector<bool>());
      break;
    default:
      read_as(std::vector<std::string>());
      break;
  }
  return out;
}

void append_text(std::string& out, std::string_view text) {
  append_number(out, uint64_t{text.size()});
  out += text;
}

void append_value(std::string& out, const GgufValue& value) {
  if (value.array) append_number(out, static_cast<uint32_t>(GgufType::array));
  append_number(out, static_cast<uint32_t>(value.type));
  std::visit(
      [&](const auto& data) {
        using T = std::decay_t<decltype(data)>;
        if constexpr (IsVector<T>::value) {
          append_number(out, uint64_t{data.size()});
          for (typename T::value_type element : data) append_element(out, value.type, element);
        } else {
          append_element(out, value.type, data);
        }
      },
      value.data);
}

}  // namespace inlaid::formats
