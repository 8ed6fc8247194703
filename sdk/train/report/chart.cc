#include "sdk/train/report/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "sdk/base/json.h"

namespace inlaid::train {
namespace {

// Units of the drawing; about one per pixel on a telephone.
constexpr double kWidth = 400, kHeight = 200, kLeft = 46, kRight = 8, kTop = 8, kBottom = 24;

constexpr double kSmallest = 1e-100;

// Steps of 1, 2 or 5 times a power of ten, about `wanted` of them over the span.
double round_step(double span, int wanted) {
  const double raw = span / wanted, power = std::pow(10.0, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power) return factor * power;
  }
  return 10 * power;
}

struct Axis {
  double low, high, step;
  double at(double value, double from, double to) const { return from + (value - low) / (high - low) * (to - from); }
};

Axis axis(double low, double high, int wanted) {
  // A span that is nothing beside the values, or beside the smallest numbers, has no round steps.
  const double size = std::max(std::fabs(low), std::fabs(high));
  if (!(high - low > size * 1e-9) || high - low < kSmallest) {
    const double margin = size < kSmallest ? 1 : size * 0.1;
    low -= margin;
    high += margin;
  }
  const double step = round_step(high - low, wanted);
  return {std::floor(low / step) * step, std::ceil(high / step) * step, step};
}

std::string text(const char* format, double a, double b) {
  char out[96];
  std::snprintf(out, sizeof out, format, a, b);
  return out;
}

// Points are few after merging, so a chart is some tens of kilobytes at most.
std::string path_of(const Curve& curve, const Axis& x, const Axis& y, double divisor) {
  std::string path;
  for (const Curve::Point& point : curve.points()) {
    path += text(path.empty() ? "M%.1f %.1f" : "L%.1f %.1f", x.at(static_cast<double>(point.step), kLeft, kWidth - kRight),
                 y.at(point.mean() / divisor, kHeight - kBottom, kTop));
  }
  return path;
}

std::string band_of(const Curve& curve, const Axis& x, const Axis& y, double divisor) {
  std::string there, back;
  for (const Curve::Point& point : curve.points()) {
    const double at = x.at(static_cast<double>(point.step), kLeft, kWidth - kRight);
    there += text(there.empty() ? "M%.1f %.1f" : "L%.1f %.1f", at, y.at(point.high / divisor, kHeight - kBottom, kTop));
    back = text("L%.1f %.1f", at, y.at(point.low / divisor, kHeight - kBottom, kTop)) + back;
  }
  return there + back + "Z";
}

std::string grid(const Axis& x, const Axis& y) {
  std::string out;
  for (double value = y.low; value <= y.high + y.step / 2; value += y.step) {
    const double at = y.at(value, kHeight - kBottom, kTop);
    const double shown = std::fabs(value) < y.step * 1e-6 ? 0 : value;
    out += text("<line class=\"grid\" x1=\"46\" x2=\"392\" y1=\"%.1f\" y2=\"%.1f\"/>", at, at);
    out += text("<text x=\"42\" y=\"%.1f\" text-anchor=\"end\">", at + 4, 0) + short_number(shown) + "</text>";
  }
  for (double value = x.low; value <= x.high + x.step / 2; value += x.step) {
    const double at = x.at(value, kLeft, kWidth - kRight);
    const char* anchor = value + x.step / 2 > x.high ? "end" : value == x.low ? "start" : "middle";
    out += text("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"", at, kHeight - 8) + anchor + "\">" + short_number(value) + "</text>";
  }
  return out;
}

void append(const std::string& item, std::string* list) {
  if (!list->empty()) *list += ',';
  *list += item;
}

// Read by the page's script to show values under the pointer.
std::string data_of(const Line& line, double divisor) {
  std::string steps, values;
  for (const Curve::Point& point : line.curve->points()) {
    char value[32];
    std::snprintf(value, sizeof value, "%.5g", point.mean() / divisor);
    append(std::to_string(point.step), &steps);
    append(value, &values);
  }
  return "{\"name\":" + to_text(Json(line.name)) + ",\"steps\":[" + steps + "],\"values\":[" + values + "]}";
}

}  // namespace

std::string html_escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string short_number(double value) {
  const double size = std::fabs(value);
  const char* suffix = "";
  if (size >= 999.5e6) {
    value /= 1e9, suffix = "G";
  } else if (size >= 999.5e3) {
    value /= 1e6, suffix = "M";
  } else if (size >= 9995) {
    value /= 1e3, suffix = "k";
  }
  char out[48];
  std::snprintf(out, sizeof out, std::fabs(value) >= 999.5 ? "%.0f%s" : "%.3g%s", value, suffix);
  return out;
}

std::string line_chart(const std::string& title, const std::vector<Line>& all, double divisor, const std::string& unit) {
  std::vector<Line> lines;
  for (const Line& line : all) {
    if (line.curve != nullptr && !line.curve->empty()) lines.push_back(line);
  }
  if (lines.empty()) return "";
  double low = lines[0].curve->low(), high = lines[0].curve->high();
  int64_t first = lines[0].curve->points().front().step, last = first;
  for (const Line& line : lines) {
    low = std::min(low, line.curve->low());
    high = std::max(high, line.curve->high());
    first = std::min(first, line.curve->points().front().step);
    last = std::max(last, line.curve->points().back().step);
  }
  const Axis y = axis(low / divisor, high / divisor, 4);
  Axis x = axis(static_cast<double>(first), std::max(static_cast<double>(last), static_cast<double>(first) + 1), 4);
  x.step = std::max(1.0, x.step);
  x.low = std::floor(x.low);
  x.high = std::ceil(x.high);

  std::string out = "<figure><figcaption><b>" + html_escape(unit.empty() ? title : title + ", " + unit) + "</b>";
  if (lines.size() > 1) {
    for (size_t i = 0; i < lines.size(); ++i) {
      out += " <span class=\"key c" + std::to_string(i) + "\">" + html_escape(lines[i].name) + "</span>";
    }
  }
  out += "<output></output></figcaption>\n<svg viewBox=\"0 0 400 200\" role=\"img\" aria-label=\"" + html_escape(title) + "\" ";
  out += text("data-low=\"%.17g\" data-high=\"%.17g\" ", x.low, x.high);
  out += "data-unit=\"" + html_escape(unit.empty() ? unit : " " + unit) + "\" data-lines=\"";
  std::string data;
  for (const Line& line : lines) append(data_of(line, divisor), &data);
  out += html_escape("[" + data + "]") + "\">" + grid(x, y);
  for (size_t i = 0; i < lines.size(); ++i) {
    const Curve& curve = *lines[i].curve;
    const std::string colour = " c" + std::to_string(i);
    const bool merged = std::any_of(curve.points().begin(), curve.points().end(), [](const auto& p) { return p.count > 1; });
    if (merged) out += "<path class=\"band" + colour + "\" d=\"" + band_of(curve, x, y, divisor) + "\"/>";
    out += "<path class=\"line" + colour + "\" d=\"" + path_of(curve, x, y, divisor) + "\"/>";
    if (!lines[i].dots && curve.points().size() > 1) continue;
    for (const Curve::Point& point : curve.points()) {
      out += "<circle class=\"dot" + colour + "\" r=\"3\" " +
             text("cx=\"%.1f\" cy=\"%.1f\"/>", x.at(static_cast<double>(point.step), kLeft, kWidth - kRight),
                  y.at(point.mean() / divisor, kHeight - kBottom, kTop));
    }
  }
  return out + "<line class=\"cursor\" y1=\"8\" y2=\"176\" x1=\"-9\" x2=\"-9\"/></svg></figure>\n";
}

}  // namespace inlaid::train
