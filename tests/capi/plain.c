/* The header in C99 and the shared library as a C program meets it: the same ABI, and nothing but C at the edge. */
#include <stdio.h>
#include <string.h>

#include "tl/c.h"

static int failures = 0;

static void expect(int holds, const char* what, int line) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "line %d: %s (last error: %s)\n", line, what, tl_last_error());
}
#define EXPECT(claim) expect((claim), #claim, __LINE__)

static void count_deletions(tl_dl_managed* self) { ++*(int*)self->context; }

static void tensors(void) {
  const float values[] = {1, 2, 3, 4};
  const int64_t shape[] = {2, 2};
  const tl_device cpu = {TL_CPU, 0};
  float out[4] = {0, 0, 0, 0};
  tl_tensor *a = NULL, *b = NULL;
  tl_arg arguments[2];
  size_t count = 0;

  EXPECT(tl_tensor_from_data(values, TL_F32, shape, 2, cpu, &a) == TL_OK);
  arguments[0] = tl_arg_tensor(a);
  arguments[1] = tl_arg_tensor(a);
  EXPECT(tl_op("matmul", arguments, 2, &b, 1, &count) == TL_OK);
  EXPECT(count == 1);
  EXPECT(tl_tensor_to_host(b, out, sizeof out) == TL_OK);
  EXPECT(out[0] == 7 && out[1] == 10 && out[2] == 15 && out[3] == 22);
  EXPECT(tl_tensor_free(b) == TL_OK);
  EXPECT(tl_tensor_free(b) == TL_BAD_HANDLE);
  EXPECT(strstr(tl_last_error(), "tl_tensor_free") != NULL);
  EXPECT(tl_tensor_free(a) == TL_OK);
}

static void borrowed(void) {
  float values[] = {1, 2, 3};
  int64_t shape[] = {3};
  int deletions = 0;
  tl_dl_managed managed;
  tl_tensor *x = NULL, *sum = NULL;
  tl_arg arguments[2];
  float out = 0;

  memset(&managed, 0, sizeof managed);
  managed.tensor.data = values;
  managed.tensor.device.type = TL_DL_CPU;
  managed.tensor.rank = 1;
  managed.tensor.dtype.code = TL_DL_FLOAT;
  managed.tensor.dtype.bits = 32;
  managed.tensor.dtype.lanes = 1;
  managed.tensor.shape = shape;
  managed.context = &deletions;
  managed.deleter = count_deletions;
  EXPECT(tl_tensor_from_dlpack(&managed, &x) == TL_OK);
  arguments[0] = tl_arg_tensor(x);
  arguments[1] = tl_arg_integer(0);
  EXPECT(tl_op("sum", arguments, 2, &sum, 1, NULL) == TL_OK);
  EXPECT(tl_tensor_free(x) == TL_OK);
  EXPECT(deletions == 1);
  EXPECT(tl_tensor_to_host(sum, &out, sizeof out) == TL_OK);
  EXPECT(out == 6);
  EXPECT(tl_tensor_free(sum) == TL_OK);
}

int main(void) {
  tl_memory_use memory;
  tensors();
  borrowed();
  EXPECT(tl_memory((tl_device){TL_CPU, 0}, &memory) == TL_OK);
  EXPECT(memory.live_bytes == 0 && memory.mapped_bytes == 0);
  EXPECT(strlen(tl_version()) > 0);
  printf("%s, %d failures\n", tl_version(), failures);
  return failures == 0 ? 0 : 1;
}
