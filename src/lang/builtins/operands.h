// The operands of a builtin that computes with floats: one dtype, one device, and numbers for
// numbers.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lang/builtin.h"

namespace tl::lang {

// Some arguments of a call as tensors that go together. Tensors among them decide dtype and device
// (integers count as f32); lists and numbers follow, or are f32 where the program's new tensors go.
// Where all of them are numbers they are f64 of rank 0 on the CPU, and the result is a number too.
class Operands {
 public:
  Operands(const Context& context, const Args& args, std::initializer_list<std::size_t> places);

  const tl::Tensor& operator[](std::size_t i) const { return tensors_[i]; }
  std::size_t size() const noexcept { return tensors_.size(); }
  bool are_numbers() const noexcept { return numbers_; }

  // The shape all of them broadcast to. Throws an error that names the function, and each operand
  // with its shape, where there is none; with `vectors` also where the last sizes are not the same.
  Shape common_shape(bool vectors) const;
  // A shape mismatch of these operands, in words: "NAME(): a [2], b [3]; why".
  [[noreturn]] void mismatch(std::string_view why) const;

  // What the call gives: the element where only numbers were given.
  Value result(tl::Tensor x) const;

 private:
  void expect_tensors() const;
  void read_numbers();
  void read_tensors(const Context& context);
  tl::Tensor follower(const Context& context, std::size_t place, DType dtype) const;

  const Args* args_;
  std::vector<std::size_t> places_;
  bool numbers_;
  std::vector<tl::Tensor> tensors_;
};

// Right-aligned, are sizes equal or one of them 1?
bool broadcast_together(const Shape& a, const Shape& b) noexcept;

// A plain number or truth value, as opposed to a tensor of one element.
bool is_plain_number(const Value& value) noexcept;

// Indices of something of `size`, on a device. Those that the host knows are checked here; a GPU's
// are checked there.
tl::Tensor checked_ids(const Context& context, const Args& args, std::size_t i, std::int64_t size,
                       const Device& device);
void check_ids(const tl::Tensor& ids, std::int64_t size);

}  // namespace tl::lang
