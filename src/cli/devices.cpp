// `tl devices`: what there is to compute on and, for what there is not, why.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/terminal.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/base/version.h"
#include "tl/kernels/modules.h"
#include "tl/runtime/device.h"
#include "tl/runtime/module_store.h"

namespace tl::cli {

namespace {

using Json = nlohmann::ordered_json;

struct DevicesArguments {
  bool json = false;
  bool modules = false;
};

struct ModuleLine {
  std::string name;
  std::string architecture;  // of the image that was taken
  std::string origin;
  std::uint64_t bytes = 0;
  std::string problem;  // why it cannot be loaded; empty when it can
};

struct DeviceLine {
  Device device;
  std::optional<MemoryInfo> memory;
  std::string problem;  // why the memory is not known
  std::vector<ModuleLine> modules;
};

std::string_view text(ModuleOrigin origin) {
  switch (origin) {
    case ModuleOrigin::Embedded:
      return "built in";
    case ModuleOrigin::Pack:
      return "from a pack";
    case ModuleOrigin::Cache:
      return "from the cache";
    case ModuleOrigin::Compiled:
      return "compiled now";
  }
  return "";
}

// Loads every module there are kernels in, which is the only way to know that the driver takes it.
std::vector<ModuleLine> load_modules(const Device& device) {
  std::vector<ModuleLine> lines;
  if (device.is_cpu()) return lines;
  for (int m = 0; m < kModuleCount; ++m) {
    const ModuleSpec& module = module_spec(static_cast<ModuleId>(m));
    if (module.kernels.empty()) continue;
    ModuleLine line{
        .name = std::string(module.name), .architecture = {}, .origin = {}, .problem = {}};
    try {
      device.modules().function(module, 0);
    } catch (const Error& error) {
      line.problem = error.what();
    }
    for (const LoadedModuleInfo& loaded : device.modules().loaded()) {
      if (loaded.name != module.name) continue;
      line.architecture = loaded.architecture;
      line.origin = text(loaded.origin);
      line.bytes = loaded.image_bytes;
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

DeviceLine look_at(const Device& device, const DevicesArguments& options) {
  DeviceLine line{.device = device, .memory = {}, .problem = {}, .modules = {}};
  try {
    line.memory = device.memory_info();
  } catch (const Error& error) {
    line.problem = error.what();
  }
  if (options.modules) line.modules = load_modules(device);
  return line;
}

std::vector<DriverInfo> gpu_drivers() {
  return {Device::driver(DeviceKind::Cuda), Device::driver(DeviceKind::Rocm)};
}

const DriverInfo* driver_of(const Device& device, const std::vector<DriverInfo>& drivers) {
  const auto found = std::find_if(drivers.begin(), drivers.end(), [&](const DriverInfo& driver) {
    return driver.kind == device.kind();
  });
  return found == drivers.end() ? nullptr : &*found;
}

Json to_json(const ModuleLine& line) {
  Json json{{"name", line.name}};
  if (!line.problem.empty()) {
    json["problem"] = line.problem;
    return json;
  }
  json["architecture"] = line.architecture;
  json["origin"] = line.origin;
  json["bytes"] = line.bytes;
  return json;
}

Json to_json(const DeviceLine& line, const DriverInfo* driver, bool with_modules) {
  const DeviceProperties& properties = line.device.properties();
  Json json{
      {"device", line.device.text()},
      {"kind", name(line.device.kind())},
      {"index", line.device.index()},
      {"name", properties.name},
      {"architecture", properties.architecture},
      {"compute_capability", {properties.major, properties.minor}},
      {"warp_width", properties.warp_width},
      {"multiprocessors", properties.multiprocessors},
      {"memory_total", nullptr},
      {"memory_free", nullptr},
      {"pci", properties.pci},
      {"uuid", properties.uuid},
      {"driver_version", driver == nullptr ? "" : driver->driver_version},
      {"runtime_version", driver == nullptr ? "" : driver->runtime_version},
      {"math_libraries", driver == nullptr ? std::vector<std::string>{} : driver->math_libraries}};
  if (line.memory) {
    json["memory_total"] = line.memory->total;
    json["memory_free"] = line.memory->free;
  } else {
    json["problem"] = line.problem;
  }
  if (with_modules) {
    json["modules"] = Json::array();
    for (const ModuleLine& module : line.modules) json["modules"].push_back(to_json(module));
  }
  return json;
}

Json to_json(const DriverInfo& driver) {
  return {{"kind", name(driver.kind)},
          {"devices", driver.device_count},
          {"reason", driver.reason},
          {"library", driver.library},
          {"driver_version", driver.driver_version},
          {"runtime_version", driver.runtime_version},
          {"compiler", driver.compiler},
          {"math_libraries", driver.math_libraries}};
}

void print_json(const std::vector<DeviceLine>& lines, const std::vector<DriverInfo>& drivers,
                const DevicesArguments& options) {
  Json json{{"version", version()}, {"devices", Json::array()}, {"drivers", Json::array()}};
  for (const DeviceLine& line : lines) {
    json["devices"].push_back(to_json(line, driver_of(line.device, drivers), options.modules));
  }
  for (const DriverInfo& driver : drivers) json["drivers"].push_back(to_json(driver));
  // A device's name comes from its driver: bytes that are not UTF-8 are replaced, not thrown over.
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_table(const std::vector<DeviceLine>& lines, const std::vector<DriverInfo>& drivers) {
  Table table;
  table.column("device").column("name").column("architecture");
  table.column("memory", Table::Align::Right).column("free", Table::Align::Right);
  table.column("driver").column("runtime").column("math libraries");
  for (const DeviceLine& line : lines) {
    const DriverInfo* driver = driver_of(line.device, drivers);
    const std::uint64_t total =
        line.memory ? line.memory->total : line.device.properties().total_memory;
    table.row({line.device.text(), line.device.name(), line.device.architecture(),
               format_bytes(total), line.memory ? format_bytes(line.memory->free) : "?",
               driver == nullptr ? "" : driver->driver_version,
               driver == nullptr ? "" : driver->runtime_version,
               driver == nullptr                ? ""
               : driver->math_libraries.empty() ? "none found"
                                                : join_list(driver->math_libraries, ", ")});
  }
  table.print(stdout);
}

void print_modules(const DeviceLine& line) {
  if (line.modules.empty()) return;
  fmt::print("\nkernel modules on {}\n", line.device.text());
  Table table;
  table.column("module").column("image for").column("origin");
  table.column("size", Table::Align::Right).column("problem");
  for (const ModuleLine& module : line.modules) {
    table.row({module.name, module.architecture, module.origin,
               module.problem.empty() ? format_bytes(module.bytes) : "", module.problem});
  }
  table.print(stdout);
}

int devices(const DevicesArguments& options) {
  const std::vector<DriverInfo> drivers = gpu_drivers();
  std::vector<DeviceLine> lines;
  for (const Device& device : Device::all()) lines.push_back(look_at(device, options));
  if (options.json) {
    print_json(lines, drivers, options);
    return 0;
  }
  print_table(lines, drivers);
  for (const DeviceLine& line : lines) print_modules(line);

  fmt::print("\n");
  for (const DeviceLine& line : lines) {
    if (!line.problem.empty()) fmt::print("{}\n", line.problem);
  }
  for (const DriverInfo& driver : drivers) {
    if (!driver.reason.empty()) {
      fmt::print("{}\n", driver.reason);
    } else if (!driver.compiler.empty()) {
      fmt::print("{}: run-time compiler: {}\n", name(driver.kind), driver.compiler);
    }
  }
  return 0;
}

}  // namespace

void add_devices(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<DevicesArguments>();
  CLI::App& command = *app.add_subcommand("devices", "list the devices there are to compute on");
  command.add_flag("--json", options->json, "print it as JSON");
  command.add_flag("--modules", options->modules,
                   "load every kernel module on every GPU and tell how");
  command.callback([options, &chosen] { chosen = [options] { return devices(*options); }; });
}

}  // namespace tl::cli
