/* Tallow for other languages: a C interface to tensors, ops, models and chats. C99 and C++.
 *
 *   tl_tensor *a = NULL, *b = NULL;
 *   const float values[] = {1, 2, 3, 4};
 *   const int64_t shape[] = {2, 2};
 *   tl_device cpu = {TL_CPU, 0};
 *   tl_tensor_from_data(values, TL_F32, shape, 2, cpu, &a);
 *   tl_arg arguments[] = {tl_arg_tensor(a), tl_arg_tensor(a)};
 *   if (tl_op("matmul", arguments, 2, &b, 1, NULL) != TL_OK) puts(tl_last_error());
 *
 * Every function that can fail returns a status; no exception and no signal leaves the library.
 * What a function gives through pointers is set when it returns TL_OK and left alone otherwise. A
 * pointer for a result that is not wanted may be null where its comment says "may be null".
 *
 * Tensors, models and chats are handles. A handle is a number in a pointer's clothes: it is never
 * reused, so a handle that was freed, or never was one, is TL_BAD_HANDLE wherever it is used, also
 * when it is freed again. Freeing null does nothing. Each handle that a function gives is freed
 * once, by the function of its kind.
 *
 * Threads: everything may be called from every thread. One tensor may be read by many at once;
 * while one writes to a tensor (tl_tensor_write), no other uses that handle. Calls that make one
 * model work wait for each other.
 *
 * Parameters that take one of an enum are ints: another number is TL_BAD_ARGUMENT.
 *
 * Texts are UTF-8. A `char **` result is the caller's, who frees it with tl_text_free. docs/c.md
 * has more examples. */
#ifndef TL_C_H
#define TL_C_H

/* NOLINTBEGIN: C, by C's habits */

#include <stddef.h>
#include <stdint.h>

#include "tl/dlpack.h"

#if defined(__GNUC__)
#define TL_API __attribute__((visibility("default")))
#else
#define TL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what went wrong */

typedef enum tl_status {
  TL_OK = 0,
  TL_BAD_ARGUMENT = 1,
  TL_SIZE_MISMATCH = 2,
  TL_SHAPE_MISMATCH = 3,
  TL_DTYPE_MISMATCH = 4,
  TL_INVALID_INDEX = 5,
  TL_OVERFLOW = 6,
  TL_UNSUPPORTED = 7,
  TL_BAD_FILE = 8,
  TL_OUT_OF_MEMORY = 9,
  TL_DRIVER_MISSING = 10,
  TL_NO_SUCH_DEVICE = 11,
  TL_WRONG_DEVICE = 12,
  TL_DEVICE_FAILED = 13,
  TL_DEVICE_LOST = 14,
  TL_MISSING_KERNEL = 15,
  TL_MODULE_LOAD = 16,
  TL_COMPILE_FAILED = 17,
  TL_BAD_HANDLE = 18, /* freed already, never made, or of another kind */
  TL_INTERNAL = 19    /* a failure that is ours */
} tl_status;

/* "ok", "bad argument", ...; never null. */
TL_API const char* tl_status_name(int status);
/* The message of the last call on this thread that failed: "softmax: ...". Stays until the next
 * failure on this thread; empty when there was none. */
TL_API const char* tl_last_error(void);
/* "0.1.0" */
TL_API const char* tl_version(void);

TL_API void tl_text_free(char* text);

/* ---- devices */

typedef enum tl_device_kind { TL_CPU = 0, TL_CUDA = 1, TL_ROCM = 2 } tl_device_kind;

typedef struct tl_device {
  int32_t kind; /* tl_device_kind */
  int32_t index;
} tl_device;

/* How many there are; 0 where the vendor's driver is not there. */
TL_API tl_status tl_device_count(int kind, int* count);
/* "cpu", "cuda:1", "rocm", or "auto" for the best one. Fails when there is none. */
TL_API tl_status tl_device_parse(const char* text, tl_device* device);
/* "NVIDIA H200" */
TL_API tl_status tl_device_name(tl_device device, char** name);
/* Waits for all work there; reports what went wrong in it. */
TL_API tl_status tl_device_synchronize(tl_device device);

/* ---- tensors
 *
 * A tensor is a value: tl_tensor_clone and views share memory and cost nothing; a write to one of
 * them first gives it memory of its own, so no other ever changes. */

typedef struct tl_tensor tl_tensor;

typedef enum tl_dtype {
  TL_U8 = 0,
  TL_U32 = 1,
  TL_I16 = 2,
  TL_I32 = 3,
  TL_I64 = 4,
  TL_F8E4M3 = 5,
  TL_F16 = 6,
  TL_BF16 = 7,
  TL_F32 = 8,
  TL_F64 = 9,
  TL_BOOL = 10 /* a byte, 0 or 1 */
} tl_dtype;

#define TL_MAX_RANK 8

/* Copies row-major elements from host memory. */
TL_API tl_status tl_tensor_from_data(const void* data, int dtype, const int64_t* shape, int rank,
                                     tl_device device, tl_tensor** tensor);
TL_API tl_status tl_tensor_zeros(int dtype, const int64_t* shape, int rank, tl_device device,
                                 tl_tensor** tensor);
TL_API tl_status tl_tensor_free(tl_tensor* tensor);
/* The same value in a second handle: shares memory. */
TL_API tl_status tl_tensor_clone(const tl_tensor* tensor, tl_tensor** clone);

TL_API tl_status tl_tensor_dtype(const tl_tensor* tensor, tl_dtype* dtype);
TL_API tl_status tl_tensor_device(const tl_tensor* tensor, tl_device* device);
TL_API tl_status tl_tensor_rank(const tl_tensor* tensor, int* rank);
/* Sizes and strides (in elements), at most `capacity` of them: TL_SIZE_MISMATCH where the rank is
 * more. */
TL_API tl_status tl_tensor_shape(const tl_tensor* tensor, int64_t* shape, int capacity);
TL_API tl_status tl_tensor_strides(const tl_tensor* tensor, int64_t* strides, int capacity);
TL_API tl_status tl_tensor_count(const tl_tensor* tensor, int64_t* elements);
TL_API tl_status tl_tensor_size_bytes(const tl_tensor* tensor, uint64_t* bytes);
/* 1 when the two see the same memory, so that a write to one has to leave it. */
TL_API tl_status tl_tensor_shares_memory(const tl_tensor* a, const tl_tensor* b, int* shares);
/* Values and shape as a person reads them. */
TL_API tl_status tl_tensor_text(const tl_tensor* tensor, char** text);

/* Itself (sharing memory) when it is there already. */
TL_API tl_status tl_tensor_to_device(const tl_tensor* tensor, tl_device device, tl_tensor** moved);
/* The elements in row-major order; `bytes` is exactly tl_tensor_size_bytes. Waits for the device.
 */
TL_API tl_status tl_tensor_to_host(const tl_tensor* tensor, void* data, uint64_t bytes);
/* The other way: every element is replaced. Whoever shared the memory keeps the old ones. */
TL_API tl_status tl_tensor_write(tl_tensor* tensor, const void* data, uint64_t bytes);

/* ---- ops
 *
 * One function for all of them: `tl ops` lists their names and parameters, docs/ops.md explains
 * them, and so do tl_op_count and tl_op_info. Views are called the same way: transpose, permute,
 * narrow, slice, select, squeeze, unsqueeze, broadcast_as, view. */

typedef enum tl_arg_kind {
  TL_ARG_NONE = 0, /* an optional argument that is not given */
  TL_ARG_TENSOR = 1,
  TL_ARG_TENSORS = 2, /* `count` of them */
  TL_ARG_INTEGER = 3,
  TL_ARG_NUMBER = 4,
  TL_ARG_BOOLEAN = 5,  /* `integer`, 0 or another */
  TL_ARG_INTEGERS = 6, /* a shape or dimensions: `count` of them, at most TL_MAX_RANK */
  TL_ARG_TEXT = 7,
  TL_ARG_DTYPE = 8, /* `integer`, a tl_dtype */
  TL_ARG_DEVICE = 9
} tl_arg_kind;

typedef struct tl_arg {
  int32_t kind; /* tl_arg_kind */
  size_t count;
  union {
    const tl_tensor* tensor;
    const tl_tensor* const* tensors;
    int64_t integer;
    double number;
    const int64_t* integers;
    const char* text;
    tl_device device;
  } value;
} tl_arg;

/* Arguments in the order of the op's signature; those left out at the end take its defaults. Writes
 * at most `capacity` results and their number to `count` (may be null); with more results than
 * `capacity` it fails and keeps none. */
TL_API tl_status tl_op(const char* name, const tl_arg* arguments, size_t argument_count,
                       tl_tensor** results, size_t capacity, size_t* count);
TL_API tl_status tl_op_count(size_t* count);
/* The op at a place from 0; the texts live as long as the program. Each of the three may be null.
 */
TL_API tl_status tl_op_info(size_t place, const char** name, const char** signature,
                            const char** help);

static inline tl_arg tl_arg_none(void) {
  tl_arg a;
  a.kind = TL_ARG_NONE;
  a.count = 0;
  a.value.integer = 0;
  return a;
}
static inline tl_arg tl_arg_tensor(const tl_tensor* tensor) {
  tl_arg a = tl_arg_none();
  a.kind = TL_ARG_TENSOR;
  a.value.tensor = tensor;
  return a;
}
static inline tl_arg tl_arg_tensors(const tl_tensor* const* tensors, size_t count) {
  tl_arg a = tl_arg_none();
  a.kind = TL_ARG_TENSORS;
  a.count = count;
  a.value.tensors = tensors;
  return a;
}
static inline tl_arg tl_arg_integer(int64_t integer) {
  tl_arg a = tl_arg_none();
  a.kind = TL_ARG_INTEGER;
  a.value.integer = integer;
  return a;
}
static inline tl_arg tl_arg_number(double number) {
  tl_arg a = tl_arg_none();
  a.kind = TL_ARG_NUMBER;
  a.value.number = number;
  return a;
}
static inline tl_arg tl_arg_boolean(int boolean) {
  tl_arg a = tl_arg_integer(boolean);
  a.kind = TL_ARG_BOOLEAN;
  return a;
}
static inline tl_arg tl_arg_integers(const int64_t* integers, size_t count) {
  tl_arg a = tl_arg_none();
  a.kind = TL_ARG_INTEGERS;
  a.count = count;
  a.value.integers = integers;
  return a;
}
static inline tl_arg tl_arg_text(const char* text) {
  tl_arg a = tl_arg_none();
  a.kind = TL_ARG_TEXT;
  a.value.text = text;
  return a;
}
static inline tl_arg tl_arg_dtype(tl_dtype dtype) {
  tl_arg a = tl_arg_integer(dtype);
  a.kind = TL_ARG_DTYPE;
  return a;
}
static inline tl_arg tl_arg_device(tl_device device) {
  tl_arg a = tl_arg_none();
  a.kind = TL_ARG_DEVICE;
  a.value.device = device;
  return a;
}

/* ---- DLPack: memory shared with other libraries
 *
 * Export: the memory is shared and pinned until the consumer calls the deleter, also when every
 * handle is freed before. The consumer only reads it: DLPack 1.0 says so with a flag, the older
 * struct cannot. A later tl_tensor_write goes to other memory, so what was exported never changes.
 * With TL_DLPACK_COPY the consumer gets a copy of its own to write to. All work on the device is
 * done when the function returns, so the memory may be used on any stream.
 *
 * Import: the memory is borrowed, without a copy, until the last tensor that shows it is gone and
 * the device is done with it; then the deleter is called, once. Tallow never writes there. Whoever
 * writes to it meanwhile changes the tensor, and has to know when the tensor is read. Elements with
 * negative strides are copied. When an import fails the struct is still the caller's and its
 * deleter was not called. */

#define TL_DLPACK_COPY 1

TL_API tl_status tl_tensor_to_dlpack(const tl_tensor* tensor, int flags, tl_dl_managed** managed);
TL_API tl_status tl_tensor_to_dlpack_versioned(const tl_tensor* tensor, int flags,
                                               tl_dl_versioned** managed);
TL_API tl_status tl_tensor_from_dlpack(tl_dl_managed* managed, tl_tensor** tensor);
TL_API tl_status tl_tensor_from_dlpack_versioned(tl_dl_versioned* managed, tl_tensor** tensor);

/* ---- models */

typedef struct tl_model tl_model;
typedef struct tl_chat tl_chat;
typedef int32_t tl_token;

/* Set by tl_model_options_init; change what should be different. */
typedef struct tl_model_options {
  size_t struct_size;
  int64_t context;           /* positions; 0: what the model was trained for */
  const char* cache_type;    /* "f16", "bf16", "q8_0" or "f32" */
  const char* chat_template; /* one that is built in; null: the model's own */
} tl_model_options;
TL_API tl_status tl_model_options_init(tl_model_options* options);

/* Set by tl_text_options_init; docs/sampling.md says what each does. */
typedef struct tl_text_options {
  size_t struct_size;
  double temperature; /* 0: always the likeliest token */
  int64_t top_k;
  double top_p;
  double min_p;
  double repetition_penalty;
  int64_t max_tokens; /* -1: until the text ends or the context is full */
  int has_seed;       /* 0: another seed each time */
  uint64_t seed;
  const char* const* stop; /* texts that end the answer */
  size_t stop_count;
  int ignore_end;    /* go on after the tokens that end a text */
  int shift_context; /* when the context is full: forget the oldest instead of ending */
} tl_text_options;
TL_API tl_status tl_text_options_init(tl_text_options* options);

typedef enum tl_finish {
  TL_FINISH_STOP = 0, /* the model ended its text */
  TL_FINISH_STOP_TEXT = 1,
  TL_FINISH_LENGTH = 2,
  TL_FINISH_CANCELLED = 3 /* by the callback */
} tl_finish;

typedef struct tl_result {
  int32_t finish; /* tl_finish */
  int64_t prompt_tokens;
  int64_t reused_tokens; /* of them, those that were in a cache */
  int64_t generated_tokens;
  double prompt_seconds;
  double answer_seconds;
} tl_result;

/* Given text as it comes: whole characters, ended by a zero that `length` does not count. 0 ends
 * the answer. It may free handles and use tensors; a call that needs the model it was called by is
 * TL_BAD_ARGUMENT. */
typedef int (*tl_on_text)(const char* text, size_t length, void* user);

typedef struct tl_message {
  const char* role; /* "system", "user", "assistant" */
  const char* content;
} tl_message;

/* Reads a GGUF file. `options` may be null. */
TL_API tl_status tl_model_open(const char* path, tl_device device, const tl_model_options* options,
                               tl_model** model);
/* Chats with it keep what they need of it. */
TL_API tl_status tl_model_free(tl_model* model);

/* At most `capacity` tokens, and to `count` how many there are: ask with capacity 0 (`tokens` may
 * then be null) for the number. TL_SIZE_MISMATCH when `capacity` is neither 0 nor enough. */
TL_API tl_status tl_model_tokenize(const tl_model* model, const char* text, tl_token* tokens,
                                   size_t capacity, size_t* count);
TL_API tl_status tl_model_detokenize(const tl_model* model, const tl_token* tokens, size_t count,
                                     char** text);

/* What the model writes after a prompt. `options`, `on_text`, `text` and `result` may be null. */
TL_API tl_status tl_model_generate(tl_model* model, const char* prompt,
                                   const tl_text_options* options, tl_on_text on_text, void* user,
                                   char** text, tl_result* result);
/* The answer to messages, by the model's chat template; nothing is kept. */
TL_API tl_status tl_model_chat(tl_model* model, const tl_message* messages, size_t count,
                               const tl_text_options* options, tl_on_text on_text, void* user,
                               char** text, tl_result* result);

/* A chat that goes on: each turn computes only what is new. `system` and `options` may be null. */
TL_API tl_status tl_chat_new(tl_model* model, const char* system, const tl_text_options* options,
                             tl_chat** chat);
TL_API tl_status tl_chat_say(tl_chat* chat, const char* message, tl_on_text on_text, void* user,
                             char** text, tl_result* result);
TL_API tl_status tl_chat_reset(tl_chat* chat);
/* The same chat a second time, which goes on by itself; the cache is shared until one of them
 * writes. */
TL_API tl_status tl_chat_clone(const tl_chat* chat, tl_chat** clone);
TL_API tl_status tl_chat_free(tl_chat* chat);

/* ---- memory */

typedef struct tl_memory_use {
  uint64_t live_bytes; /* held by tensors, models and exports */
  uint64_t live_blocks;
  uint64_t peak_bytes;   /* the most that live_bytes was */
  uint64_t pooled_bytes; /* kept from the driver for reuse */
  uint64_t mapped_bytes; /* borrowed: mapped files and imports */
} tl_memory_use;

TL_API tl_status tl_memory(tl_device device, tl_memory_use* use);
TL_API tl_status tl_memory_reset_peak(tl_device device);
/* Gives back what is pooled; `bytes`, which may be null, is how much that was. */
TL_API tl_status tl_memory_trim(tl_device device, uint64_t* bytes);
/* All devices that were opened, with who holds what:
 * {"devices": [{"device": "cpu", "live_bytes": 0, ..., "held": [{"label": "...", "bytes": 0,
 * "blocks": 0}]}]} */
TL_API tl_status tl_memory_json(char** json);

#ifdef __cplusplus
}
#endif

/* NOLINTEND */

#endif
