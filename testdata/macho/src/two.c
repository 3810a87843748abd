static int helper(int x) { return x * x + 3; }
int counter;
__attribute__((noinline)) static int local(int x) { counter += x; return counter ^ x; }
int other(int x) {
    int sum = 0;
    for (int i = 0; i < x; i++)
        sum += helper(i) + local(i);
    return sum;
}
