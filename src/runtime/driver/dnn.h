// The vendors' libraries for convolutions behind one table, as table.h does for the drivers.
//
// cudnn.cpp and miopen.cpp each fill a table from a library that is opened at run time. TL_CUDNN
// and TL_MIOPEN name other files; TL_NO_VENDOR_LIBS=1 leaves them all closed. With a stand-in for
// the driver nothing is opened unless it is named: the libraries would talk to the real one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/driver/table.h"
#include "tl/base/dtype.h"

namespace tl::driver {

// A convolution of contiguous tensors, (batch, channels, axes) and (out, in, axes), or with the
// channels of x and of the kernel last where channels_last says so; y is never so. There are always
// three spatial axes; those that a convolution of fewer does not have come first, with sizes of 1.
struct ConvolutionAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t output_padding = 0;  // transposed only

  friend bool operator==(const ConvolutionAxis&, const ConvolutionAxis&) = default;
};

struct Convolution {
  bool transposed = false;
  bool channels_last = false;
  DType dtype = DType::F32;
  std::int64_t batch = 0;
  std::int64_t groups = 1;
  std::int64_t in_channels = 0;   // of one group
  std::int64_t out_channels = 0;  // of one group
  std::array<ConvolutionAxis, 3> axes;

  friend bool operator==(const Convolution&, const Convolution&) = default;
};

struct ConvolutionHash {
  std::size_t operator()(const Convolution& c) const noexcept;
};

// A convolution that a library has agreed to do. Belongs to one context.
class ConvolutionPlan {
 public:
  virtual ~ConvolutionPlan() = default;
  ConvolutionPlan(const ConvolutionPlan&) = delete;
  ConvolutionPlan& operator=(const ConvolutionPlan&) = delete;

  virtual std::size_t workspace_bytes() const noexcept = 0;
  // False when the library failed; then nothing is written that matters.
  virtual bool run(Handle stream, const void* x, const void* kernel, void* y, void* workspace) = 0;

 protected:
  ConvolutionPlan() = default;
};

// A library's state for one context. Used by one thread at a time.
class DnnSession {
 public:
  virtual ~DnnSession() = default;
  DnnSession(const DnnSession&) = delete;
  DnnSession& operator=(const DnnSession&) = delete;

  // Null when the library refuses the convolution.
  virtual std::unique_ptr<ConvolutionPlan> plan(const Convolution& convolution) = 0;

 protected:
  DnnSession() = default;
};

struct DnnTable {
  std::string library;
  std::string version;
  // In the thread's current context; null when the library cannot work with it.
  std::unique_ptr<DnnSession> (*open)() = nullptr;
};

const Found<DnnTable>& find_dnn(DeviceKind kind);

// The parts that find_dnn() puts together.
Found<DnnTable> open_cudnn();
Found<DnnTable> open_miopen();

}  // namespace tl::driver
