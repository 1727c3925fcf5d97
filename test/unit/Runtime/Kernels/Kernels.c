/* Kernels of the CPU's ABI (docs/architecture.md, 3), linked by the tests as
 * the compiler's objects are: they call nothing. */
#include <stdint.h>

/* out[p] = 1 + p for each program p; counts[p] += 1; who[p] = the thread. */
void record(const int64_t *slots, int64_t gx, int64_t gy, int64_t gz,
            int64_t begin, int64_t end) {
  int64_t *out = (int64_t *)slots[0];
  int64_t *counts = (int64_t *)slots[1];
  int64_t *who = (int64_t *)slots[2];
  int64_t spin = slots[3];
  for (int64_t p = begin; p < end; ++p) {
    for (volatile int64_t i = 0; i < spin; ++i)
      ;
    out[p] = 1 + p;
    counts[p] += 1;
    who[p] = (int64_t)__builtin_thread_pointer();
  }
}

/* Where program p is in the grid, x fastest: out[p] = x + 1000 y + 1000000 z.
 */
void place(const int64_t *slots, int64_t gx, int64_t gy, int64_t gz,
           int64_t begin, int64_t end) {
  int64_t *out = (int64_t *)slots[0];
  for (int64_t p = begin; p < end; ++p)
    out[p] = p % gx + 1000 * (p / gx % gy) + 1000000 * (p / (gx * gy));
}

/* One parameter of each kind, as they lie in their slots. */
void kinds(const int64_t *slots, int64_t gx, int64_t gy, int64_t gz,
           int64_t begin, int64_t end) {
  double *out = (double *)slots[0];
  out[0] = (double)slots[1];
  out[1] = (double)*(const int32_t *)&slots[2];
  out[2] = (double)*(const float *)&slots[3];
}

/* The memory that the runtime lends, whose address follows the slots: each
 * program fills all of it, and counts what another one changed meanwhile. */
void lent(const int64_t *slots, int64_t gx, int64_t gy, int64_t gz,
          int64_t begin, int64_t end) {
  int64_t *wrong = (int64_t *)slots[0];
  int64_t words = slots[1];
  volatile int64_t *memory = (volatile int64_t *)slots[2];
  for (int64_t p = begin; p < end; ++p) {
    wrong[p] = (uintptr_t)memory % 64 != 0;
    for (int64_t i = 0; i < words; ++i)
      memory[i] = p + i;
    for (int64_t i = 0; i < words; ++i)
      wrong[p] += memory[i] != p + i;
  }
}

/* Constants and a table, so that there are relocations to other sections. */
static const double table[4] = {0.5, 1.5, 2.5, 3.5};
static int64_t calls[16];
void tables(const int64_t *slots, int64_t gx, int64_t gy, int64_t gz,
            int64_t begin, int64_t end) {
  double *out = (double *)slots[0];
  for (int64_t p = begin; p < end; ++p)
    out[p] = table[p & 3] + (double)++calls[p & 15];
}

/* out[p] = x * y in the thread's own arithmetic, after `slots[3]` turns. */
void multiply(const int64_t *slots, int64_t gx, int64_t gy, int64_t gz,
              int64_t begin, int64_t end) {
  volatile float *out = (float *)slots[0];
  const volatile float *x = (const float *)&slots[1];
  const volatile float *y = (const float *)&slots[2];
  for (int64_t p = begin; p < end; ++p) {
    for (volatile int64_t i = 0; i < slots[3]; ++i)
      ;
    out[p] = *x * *y;
  }
}
