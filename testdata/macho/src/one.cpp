namespace shapes {
struct Square {
    int side;
    __attribute__((noinline)) int area() const;
    int twice() const { return area() * 2; }
};
template <class T> __attribute__((noinline)) T clamp(T value, T low, T high) {
    return value < low ? low : value > high ? high : value;
}
static inline int mix(int a, int b) { return (a * 31) ^ (b + 7); }
int Square::area() const {
    int sum = 0;
    for (int i = 0; i < side; i++)
        sum = mix(sum, i) + side;
    return clamp(sum, 0, 1000);
}
}
extern "C" int other(int);
extern "C" int main(int argc, char**) {
    shapes::Square square{argc};
    auto add = [&](int more) { return square.twice() + more; };
    return add(other(argc)) & 0x7f;
}
