/* A kernel that calls what nobody defines here. */
#include <stdint.h>

void elsewhere(int64_t);
void undefined(const int64_t *slots, int64_t gx, int64_t gy, int64_t gz,
               int64_t begin, int64_t end) {
  elsewhere(begin);
}
