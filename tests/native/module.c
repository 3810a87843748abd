// Code in several sections, as a kernel module has it. Needs neither headers nor a library.
#define IN(name) __attribute__((section(name), noinline, used))

static volatile int sink;

static inline int scaled(int value, int by) {
  sink += by;
  return value * by + sink;
}

static inline int twice(int value) {
  return scaled(value, 2) + scaled(value + sink, 3);
}

IN(".init.text") int module_begin(int value) {
  return twice(value) + 1;
}

int module_work(int value) {
  int sum = 0;
  for (int i = 0; i < value; i++)
    sum += twice(i);
  return sum;
}

IN(".exit.text") int module_end(int value) {
  return scaled(value, 5);
}

int module_rest(int value) {
  return module_work(value) + twice(sink);
}
