/* Attention in C: softmax(q k^T / sqrt(d)) v, on the best device there is. */
#include <stdio.h>
#include <stdlib.h>

#include <tl/c.h>

static void good(tl_status status) {
  if (status == TL_OK) return;
  fprintf(stderr, "%s: %s\n", tl_status_name(status), tl_last_error());
  exit(1);
}

/* One result, and the input is freed: what a chain of ops wants. */
static tl_tensor* then(tl_tensor* input, const char* op, tl_arg second) {
  tl_arg arguments[2];
  tl_tensor* result = NULL;
  arguments[0] = tl_arg_tensor(input);
  arguments[1] = second;
  good(tl_op(op, arguments, second.kind == TL_ARG_NONE ? 1 : 2, &result, 1, NULL));
  good(tl_tensor_free(input));
  return result;
}

int main(void) {
  const float values[] = {1, 0, 0, 1, 1, 1, 2, 0};
  const int64_t shape[] = {4, 2};
  float out[8];
  tl_device device;
  tl_tensor *q = NULL, *kt = NULL, *scores = NULL;
  tl_arg ends[3];
  tl_memory_use memory;
  int i;

  good(tl_device_parse("auto", &device));
  good(tl_tensor_from_data(values, TL_F32, shape, 2, device, &q)); /* (4, 2) */

  ends[0] = tl_arg_tensor(q);
  ends[1] = tl_arg_integer(0);
  ends[2] = tl_arg_integer(1);
  good(tl_op("transpose", ends, 3, &kt, 1, NULL)); /* (2, 4), the same memory */

  good(tl_tensor_clone(q, &scores));
  scores = then(scores, "matmul", tl_arg_tensor(kt)); /* (4, 4) */
  scores = then(scores, "mul", tl_arg_number(0.70710678));
  scores = then(scores, "softmax", tl_arg_none());
  scores = then(scores, "matmul", tl_arg_tensor(q)); /* (4, 2) */
  good(tl_tensor_to_host(scores, out, sizeof out));
  for (i = 0; i < 4; ++i) printf("%.3f %.3f\n", (double)out[2 * i], (double)out[2 * i + 1]);

  good(tl_tensor_free(scores));
  good(tl_tensor_free(kt));
  good(tl_tensor_free(q));
  good(tl_memory(device, &memory));
  printf("live bytes: %llu\n", (unsigned long long)memory.live_bytes);
  return memory.live_bytes == 0 ? 0 : 1;
}
