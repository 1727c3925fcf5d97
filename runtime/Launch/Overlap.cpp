#include "dither/Runtime/Launch/Overlap.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace llvm;

namespace dither::runtime::launch {

namespace {

/// Whether each stride steps over all that the ones after it reach, as in most
/// tensors; then no two elements share a byte.
bool isNested(const TensorRef &tensor) {
  int64_t reach = 1;
  for (int dim = tensor.rank - 1; dim >= 0; --dim) {
    int64_t stride = tensor.strides[dim], count = tensor.shape[dim], all;
    if (count == 1)
      continue;
    if (stride < reach || MulOverflow(stride, count - 1, all) ||
        all > int64_t(1) << 54)
      return false;
    reach += all;
    if (tensor.type == DataType::Float4E2M1 && reach % 2)
      ++reach;
  }
  return true;
}

/// A tensor as runs of bytes: one run at `first` plus, for each term, any
/// multiple up to `count` - 1 of its stride.
struct Term {
  int64_t stride, count;
};
struct Runs {
  uint64_t first;
  int64_t length;
  SmallVector<Term, maxRank> terms;
  /// Whether no tensor in memory can be so.
  bool absurd = false;

  explicit Runs(const TensorRef &tensor) : first(tensor.pointer) {
    int64_t bits = bitsOf(tensor.type);
    length = divideCeil(bits, 8);
    for (int dim = tensor.rank - 1; dim >= 0; --dim) {
      int64_t count = tensor.shape[dim], stride;
      if (count == 1)
        continue;
      bool inner =
          terms.empty() && tensor.strides[dim] == 1 && dim == tensor.rank - 1;
      if (inner) {
        length = divideCeil(count * bits, 8);
        continue;
      }
      if (MulOverflow(tensor.strides[dim], bits, stride)) {
        absurd = true;
        return;
      }
      stride /= 8;
      if (stride == length && terms.empty()) {
        length *= count;
        continue;
      }
      int64_t reach;
      absurd |= MulOverflow(stride, count - 1, reach) ||
                reach > int64_t(1) << 60 || reach < -(int64_t(1) << 60);
      if (absurd)
        return;
      terms.push_back({stride, count});
    }
  }
};

/// A number between `least` and `most`, of its multiples of `stride` > 0.
struct Variable {
  int64_t stride, least, most;
};

/// Looks for values of the variables whose sum with a start lies between two
/// bounds, both inclusive.
class Search {
public:
  Search(int64_t least, int64_t most, bool zeroCounts)
      : least(least), most(most), zeroCounts(zeroCounts) {}

  void add(int64_t stride, int64_t from, int64_t to, bool merge) {
    if (stride < 0) {
      stride = -stride;
      std::tie(from, to) = std::make_pair(-to, -from);
    }
    if (stride == 0 && merge)
      return;
    for (Variable &v : variables)
      if (merge && v.stride == stride) {
        v.least += from;
        v.most += to;
        return;
      }
    variables.push_back({stride, from, to});
  }

  /// Whether there are such values, or it takes too long to tell. Unless
  /// `zeroCounts`, one of them is not 0.
  bool finds(int64_t start) {
    llvm::sort(variables, [](const Variable &a, const Variable &b) {
      return a.stride > b.stride;
    });
    rest.assign(variables.size() + 1, {0, 0, 0});
    for (size_t i = variables.size(); i-- > 0;) {
      const Variable &v = variables[i];
      rest[i] = {std::gcd(rest[i + 1].stride, v.stride),
                 rest[i + 1].least + v.stride * v.least,
                 rest[i + 1].most + v.stride * v.most};
    }
    return from(0, start, !zeroCounts);
  }

private:
  /// `allZero`: every value so far is 0, which does not count.
  bool from(size_t i, int64_t sum, bool allZero) {
    if (++steps > limit)
      return true;
    if (i == variables.size())
      return sum >= least && sum <= most && !allZero;
    // What the rest can add: multiples of their common divisor in a range.
    const Variable &all = rest[i];
    int64_t low = std::max(least - sum, all.least),
            high = std::min(most - sum, all.most);
    if (low > high ||
        (all.stride && divideFloorSigned(high, all.stride) * all.stride < low))
      return false;
    const Variable &v = variables[i];
    int64_t begin = v.least, end = v.most;
    if (v.stride) {
      begin =
          std::max(begin, divideCeilSigned(low - rest[i + 1].most, v.stride));
      end =
          std::min(end, divideFloorSigned(high - rest[i + 1].least, v.stride));
    }
    for (int64_t value = begin; value <= end; ++value)
      if (from(i + 1, sum + v.stride * value, allZero && value == 0))
        return true;
    return false;
  }

  static constexpr unsigned limit = 1 << 14;
  int64_t least, most;
  bool zeroCounts;
  SmallVector<Variable, 2 * maxRank> variables;
  /// Of the variables from one on: common divisor, least and greatest sum.
  SmallVector<Variable, 2 * maxRank + 1> rest;
  unsigned steps = 0;
};

} // namespace

Span spanOf(const TensorRef &tensor) {
  if (isEmpty(tensor))
    return {tensor.pointer, tensor.pointer};
  int64_t bits = bitsOf(tensor.type), low = 0, high = 1;
  for (unsigned dim = 0; dim < tensor.rank; ++dim) {
    int64_t reach;
    if (MulOverflow(tensor.strides[dim], tensor.shape[dim] - 1, reach) ||
        reach > int64_t(1) << 54 || reach < -(int64_t(1) << 54))
      return {0, std::numeric_limits<uint64_t>::max()};
    (reach < 0 ? low : high) += reach;
  }
  return {tensor.pointer + divideFloorSigned(low * bits, 8),
          tensor.pointer + divideCeilSigned(high * bits, 8)};
}

bool isSame(const TensorRef &a, const TensorRef &b) {
  if (a.pointer != b.pointer || a.type != b.type || a.rank != b.rank ||
      a.device != b.device || a.readOnly != b.readOnly)
    return false;
  for (unsigned dim = 0; dim < a.rank; ++dim)
    if (a.shape[dim] != b.shape[dim] || a.strides[dim] != b.strides[dim])
      return false;
  return !isEmpty(a);
}

bool overlap(const TensorRef &a, const TensorRef &b) {
  if (isEmpty(a) || isEmpty(b) || !spanOf(a).meets(spanOf(b)))
    return false;
  Runs one(a), two(b);
  if (one.absurd || two.absurd)
    return true;
  if (one.terms.empty() && two.terms.empty())
    return true;
  // A run of the second begins behind a run of the first by a distance at
  // which they meet.
  Search search(1 - two.length, one.length - 1, /*zeroCounts=*/true);
  for (const Term &term : one.terms)
    search.add(-term.stride, 0, term.count - 1, /*merge=*/true);
  for (const Term &term : two.terms)
    search.add(term.stride, 0, term.count - 1, /*merge=*/true);
  return search.finds(static_cast<int64_t>(two.first - one.first));
}

bool overlapsItself(const TensorRef &tensor) {
  if (isEmpty(tensor) || isNested(tensor))
    return false;
  Runs runs(tensor);
  if (runs.absurd)
    return true;
  Search search(1 - runs.length, runs.length - 1, /*zeroCounts=*/false);
  for (const Term &term : runs.terms)
    search.add(term.stride, 1 - term.count, term.count - 1, /*merge=*/false);
  return search.finds(0);
}

} // namespace dither::runtime::launch
