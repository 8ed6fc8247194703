// Points in time as text. Not gmtime: the C library reads the process's TZ for it.
#ifndef INLAID_SDK_BASE_CLOCK_H_
#define INLAID_SDK_BASE_CLOCK_H_

#include <cstdint>
#include <string>

namespace inlaid {

// Milliseconds since 1970 by the system's clock.
int64_t unix_ms_now();

// "YYYY-MM-DDThh:mm:ss" in UTC of a number of seconds since 1970, from the year 0 to 9999; "" for a time outside of it.
std::string utc_text(int64_t unix_seconds);

}  // namespace inlaid

#endif  // INLAID_SDK_BASE_CLOCK_H_
