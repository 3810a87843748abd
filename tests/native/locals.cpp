// Functions of local classes: lambdas and methods, whose code GCC describes inside the function around them. Compiled twice: an
// inline function of both units stands at different lines.
#include <cstdlib>

struct Guard {
  int *held;
  ~Guard() {
    if (held)
      std::free(held);
  }
};

#ifdef SECOND

// Lines that the other unit does not have.
#define MARK 2
#else
#define MARK 1
#endif
inline __attribute__((noinline)) int shared_by_both(int n) {
  Guard guard{static_cast<int *>(std::malloc(n))};
  return n * std::rand() + 7;
}

#ifdef SECOND
int second(int n) { return shared_by_both(n) + MARK; }
#else
int second(int n);

template <class F> __attribute__((noinline)) int twice(F call, int n) { return call(n) + call(n + 1); }

static inline int around(int n) {
  struct Local {
    int weight;
    __attribute__((noinline)) int method(int by) {
      struct Inner {
        __attribute__((noinline)) int deep(int x) {
          Guard guard{static_cast<int *>(std::malloc(x))};
          return x * std::rand();
        }
      } inner;
      Guard guard{static_cast<int *>(std::malloc(by))};
      return inner.deep(by) + weight;
    }
  } local{n};
  auto lambda = [&](int x) __attribute__((noinline)) {
    Guard guard{static_cast<int *>(std::malloc(x))};
    return x + n * std::rand();
  };
  return twice(lambda, n) + local.method(n);
}

int main(int argc, char **) {
  auto lambda = [&](int x) __attribute__((noinline)) {
    Guard guard{static_cast<int *>(std::malloc(x))};
    return x - argc;
  };
  return around(argc) + twice(lambda, argc) + shared_by_both(argc) + second(argc);
}
#endif
