/* C: static functions that the compiler splits, clones and inlines; no linkage names in the debug information. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int clamp(int value, int low, int high) { return value < low ? low : value > high ? high : value; }

static int weigh(int value, int kind) {
  switch (kind) {
  case 0:
    return clamp(value, 0, 100);
  case 1:
    return clamp(value * 3, -5, 50);
  case 7:
    return value / 3;
  default:
    return clamp(value ^ kind, 1, 9);
  }
}

__attribute__((noinline, noclone)) static int report(const char *what, int value) {
  if (value < 0) {
    fprintf(stderr, "%s: %d\n", what, value);
    abort();
  }
  return (int)strlen(what) + value;
}

__attribute__((noinline)) static int scaled(int value, int factor, int unused) {
  (void)unused;
  int out = 0;
  for (int i = 0; i < value; i++)
    out += weigh(i * factor, i & 7);
  return out;
}

int plain_sum(const int *values, int count) {
  int sum = 0;
  for (int i = 0; i < count; i++) {
    sum += weigh(values[i], i & 3);
    if (sum < -1000)
      return report("sum", sum);
  }
  return sum + scaled(count, 3, 1) + scaled(sum & 15, 3, 2);
}

int plain_parse(const char *text) {
  int value = 0;
  while (*text >= '0' && *text <= '9')
    value = value * 10 + (*text++ - '0');
  if (value > 1000000)
    return report(text, value);
  return clamp(value, -3, 3000);
}
