/* Tensors of other libraries: the structs of DLPack, as its published binary interface lays them
 * out.
 *
 * They have names of their own, so that a file may include this and dlpack/dlpack.h; a pointer to
 * one may be cast to a pointer to the other. DLManagedTensor is tl_dl_managed,
 * DLManagedTensorVersioned (DLPack 1.0) is tl_dl_versioned. The functions that take and give them
 * are in tl/c.h. C99 and C++. */
#ifndef TL_DLPACK_H
#define TL_DLPACK_H

/* NOLINTBEGIN: C, by C's habits */

#include <stdint.h>

/* Device types that Tallow knows. Memory of the two Host types is read as the CPU's, Managed as
 * CUDA's. */
enum {
  TL_DL_CPU = 1,
  TL_DL_CUDA = 2,
  TL_DL_CUDA_HOST = 3,
  TL_DL_ROCM = 10,
  TL_DL_ROCM_HOST = 11,
  TL_DL_CUDA_MANAGED = 13
};

/* Codes of element types. */
enum {
  TL_DL_INT = 0,
  TL_DL_UINT = 1,
  TL_DL_FLOAT = 2,
  TL_DL_BFLOAT = 4,
  TL_DL_BOOL = 6,
  TL_DL_FLOAT8_E4M3FN = 10
};

/* Bits of tl_dl_versioned.flags. */
#define TL_DL_FLAG_READ_ONLY UINT64_C(1)
#define TL_DL_FLAG_IS_COPIED UINT64_C(2)

typedef struct tl_dl_device {
  int32_t type;
  int32_t id;
} tl_dl_device;

typedef struct tl_dl_dtype {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} tl_dl_dtype;

typedef struct tl_dl_tensor {
  void* data;
  tl_dl_device device;
  int32_t rank;
  tl_dl_dtype dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; null: row-major without gaps */
  uint64_t byte_offset;
} tl_dl_tensor;

/* Whoever holds it calls deleter(self) once, when it needs the memory no more. */
typedef struct tl_dl_managed {
  tl_dl_tensor tensor;
  void* context; /* the producer's */
  void (*deleter)(struct tl_dl_managed* self);
} tl_dl_managed;

typedef struct tl_dl_version {
  uint32_t major;
  uint32_t minor;
} tl_dl_version;

typedef struct tl_dl_versioned {
  tl_dl_version version;
  void* context;
  void (*deleter)(struct tl_dl_versioned* self);
  uint64_t flags;
  tl_dl_tensor tensor;
} tl_dl_versioned;

/* NOLINTEND */

#endif
