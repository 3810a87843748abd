// C++ with what makes symbolization hard: templates, lambdas, inlining several deep, exceptions (cold parts), unnamed
// namespaces, local types, overloaded operators.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" int plain_sum(const int *values, int count);
extern "C" int plain_parse(const char *text);

namespace {
template <typename T> struct Cell {
  T value;
  static int counter;
  __attribute__((always_inline)) T get(bool twice) const { return twice ? value + value : value; }
  __attribute__((noinline)) T slow(int n) const {
    T sum{};
    for (int i = 0; i < n; ++i)
      sum += get(i % 3 == 0);
    return sum;
  }
};
template <typename T> int Cell<T>::counter = 0;

struct Point {
  double x, y;
  Point operator+(const Point &other) const { return {x + other.x, y + other.y}; }
  bool operator<(const Point &other) const { return x < other.x || (x == other.x && y < other.y); }
};
} // namespace

namespace shapes {
class Shape {
public:
  virtual ~Shape() = default;
  virtual double area() const = 0;
  std::string name;
};

template <int Sides> class Polygon : public Shape {
  std::vector<Point> points;

public:
  explicit Polygon(double size) {
    for (int i = 0; i < Sides; ++i)
      points.push_back(Point{size * i, size / (i + 1)});
    name = "polygon" + std::to_string(Sides);
  }
  double area() const override {
    double sum = 0;
    for (size_t i = 0; i + 1 < points.size(); ++i)
      sum += points[i].x * points[i + 1].y - points[i + 1].x * points[i].y;
    return sum / 2;
  }
};

__attribute__((noinline)) double total(const std::vector<std::unique_ptr<Shape>> &all) {
  double sum = 0;
  std::for_each(all.begin(), all.end(), [&sum](const std::unique_ptr<Shape> &shape) {
    auto twice = [](double d) { return d * 2; };
    sum += twice(shape->area());
  });
  if (sum < -1e9)
    throw std::runtime_error("negative: " + std::to_string(sum));
  return sum;
}

static inline int depth3(int n) { return plain_parse("3") + n * 7; }
static inline int depth2(int n) { return n > 2 ? depth3(n - 1) * 3 : n; }
static inline int depth1(int n) { return depth2(n + 1) + depth2(n * 2); }

__attribute__((noinline)) int nested(int n) {
  struct Local {
    int weight;
    int scaled(int by) const { return weight * by + depth1(by); }
  };
  Local local{n};
  int out = 0;
  for (int i = 0; i < n; ++i)
    out += local.scaled(i) + depth1(i);
  return out;
}
} // namespace shapes

int main(int argc, char **argv) {
  std::vector<std::unique_ptr<shapes::Shape>> all;
  all.push_back(std::make_unique<shapes::Polygon<3>>(argc));
  all.push_back(std::make_unique<shapes::Polygon<7>>(argc * 2));
  std::map<Point, std::string> named;
  named[Point{1, 2} + Point{3, 4}] = "a";
  std::vector<int> values;
  for (int i = 0; i < argc + 10; ++i)
    values.push_back(i * i);
  std::sort(values.begin(), values.end(), [](int a, int b) { return a % 10 < b % 10; });
  try {
    std::printf("%f %d %d\n", shapes::total(all), shapes::nested(argc + 3),
                plain_sum(values.data(), static_cast<int>(values.size())));
  } catch (const std::exception &e) {
    std::printf("%s\n", e.what());
  }
  Cell<int> c{3};
  Cell<double> d{1.5};
  return c.slow(argc) + static_cast<int>(d.slow(argc)) + plain_parse(argv[0]) + static_cast<int>(named.size());
}
