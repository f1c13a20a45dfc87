// Runs compiled functions.
#pragma once

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lang/builtin.h"
#include "lang/bytecode.h"
#include "lang/diagnostic.h"
#include "lang/operators.h"
#include "lang/training.h"
#include "lang/world.h"

namespace tl::lang {

class Vm;

// The machine whose structs are dropped now; returns the one before.
Vm* activate(Vm* vm) noexcept;
// An end of a range: an integer, or what becomes one.
std::int64_t bound_of(const Value& value);

class Vm final : public Context {
 public:
  explicit Vm(World& world);
  Vm(const Vm&) = delete;
  Vm& operator=(const Vm&) = delete;
  ~Vm() override;

  // A function without parameters. Throws ProgramError; nothing of the call is left then.
  Value run(const Function& function);
  Value call(const Value& function, std::span<const Value> given) override;
  void check_interrupt() override;
  void count_work() override;

  // Waits for the device, so that what went wrong there is told. `block` is what has run.
  void synchronize(const Function& block);
  void stop_learning() noexcept;

  Value& global(std::uint32_t slot) { return globals_[slot]; }
  // Gives up all globals, the last first.
  void clear_globals();
  void forget_globals() noexcept;  // the same without any Drop

  std::uint64_t step_limit = 0;                    // calls and turns of loops; 0: none
  const std::atomic<bool>* interrupted = nullptr;  // set: the program ends with an error

 private:
  struct CallFrame {
    const Function* function;
    const Instruction* pc;  // of the call, while another function runs
    Value* base;
    const Value* captured;
    Operand result;  // the caller's
    Operand self;
    bool clears_callee;  // a function value lies before the arguments
  };
  // A function that a call turned out to be of, and where its registers begin.
  struct Entry {
    const Function* function = nullptr;  // none: the call is done
    Value* base = nullptr;
    const Value* captured = nullptr;
    Operand self = kNowhere;
  };
  struct Free {
    void operator()(Value* values) const noexcept { std::free(values); }
  };
  using Stack = std::unique_ptr<Value[], Free>;

  static Stack new_stack(std::size_t count);
  Value execute(std::size_t entry);
  // An instruction that the loop leaves to this; where it goes on. `spaces` are what operands are
  // in.
  const Instruction* rare(const Instruction& i, const Function& function, Value* const* spaces,
                          const Instruction* pc);
  void push(const Function& function, Value* base, const Value* captured, Operand result,
            Operand self, bool clears_callee);
  void unwind(std::size_t entry) noexcept;
  [[noreturn]] void fail(const std::string& message, const Instruction* pc);
  Span span_of(const CallFrame& frame, const Instruction* pc) const;
  Label label(const Function& function, const Instruction* pc);
  void steps_used();
  void run_drops();

  // Parts of instructions.
  void enter(const Function& function, Value* base);
  void check_result(const Function& function, Value& result);
  void prepare_arguments(const Function& function, const CallSite& site, Value* values,
                         bool has_receiver);
  void call_builtin(const Builtin& builtin, Value* values, std::uint32_t count,
                    const CallSite* site, bool has_receiver, Value& result);
  // receiver.name(...), the arguments after the receiver. `root`: the receiver is still to be
  // fetched from the site's path of it, whose indices lie before; it may be changed there.
  Entry call_method(const Function& caller, const CallSite& site, Value* receiver, Value* root,
                    Value& result);
  bool change_place(const Function& caller, const CallSite& site, Value* receiver, Value& root,
                    Value& result);
  Entry struct_method(const CallSite& site, const std::string& name, Value* receiver);
  void time_builtin(const Builtin& builtin, Args& args, Value& result);
  void tell_share(const Value& value, const Function& function, const Instruction* pc);
  Value get_field(const Value& base, const std::string& name);
  Value& walk(Value& root, const Function& function, const Path& path, std::size_t steps,
              Value*& indices);
  Value get_path(const Value& root, const Function& function, const Path& path,
                 const Value* indices);
  void set_field(StructObject& object, std::size_t field, Value value);
  void set_path(Value& root, const Function& function, const Path& path, Value* indices);
  bool match(const CompiledPattern& pattern, const Value& value, Value* base);
  Value new_struct(const StructSite& site, Value* fields);

  World& world_;
  Stack stack_;
  Stack globals_;
  std::vector<CallFrame> frames_;
  std::vector<StructObject*> pending_drops_;
  std::optional<HistoryScope> history_;  // inside learn
  std::uint64_t steps_ = 0;
  std::int64_t budget_;  // until the next look at steps and interruption
  int depth_ = 0;        // of execute() within execute()
  friend struct StructObject;
};

}  // namespace tl::lang
