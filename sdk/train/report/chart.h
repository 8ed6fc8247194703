// Line charts as SVG, drawn without any script so that a page of them can be read offline and printed.
#ifndef INLAID_SDK_TRAIN_REPORT_CHART_H_
#define INLAID_SDK_TRAIN_REPORT_CHART_H_

#include <string>
#include <vector>

#include "sdk/train/report/curve.h"

namespace inlaid::train {

struct Line {
  std::string name;
  const Curve* curve;
  bool dots = false;  // mark every point: for few of them
};

// <figure> with a title, a legend when there are several lines, axes with round numbers and the lines, coloured by their
// position. The range from the lowest to the highest value of a merged point is a pale band behind its line. Lines without
// points are left out; "" when none is left. Values are shown divided by `divisor`, in `unit`.
std::string line_chart(const std::string& title, const std::vector<Line>& lines, double divisor = 1,
                       const std::string& unit = "");

std::string html_escape(std::string_view text);
// "1.25", "0.0002", "12.5k", "3.2M": three significant digits.
std::string short_number(double value);

}  // namespace inlaid::train

#endif  // INLAID_SDK_TRAIN_REPORT_CHART_H_
