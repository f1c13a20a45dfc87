# How GPU kernels are built, packed and embedded.
#
# Every module (one .cu file) is compiled for every target below, ahead of time, by the compilers
# that are found; a compiler that is missing leaves its targets to the run-time compilers. The
# images do not depend on the preset, so they are made once, by a small project of their own
# (cmake/gpu_images) in a folder that all build trees of this source tree share. Each build tree then
# packs them with the sources into one file and embeds it.
#
#   tl_gpu_images            target: brings the shared images up to date
#   tl_kernel_pack           target: the pack, at ${TL_KERNEL_PACK}
#   tl_add_sim_pack()        for tests: the kernels as host code, packed for the simulated GPU

set(TL_KERNEL_MODULES
    affine
    attention
    attention_grad
    binary
    cache
    cast
    conv
    decode
    fill
    indexing
    matmul
    norm
    quant_group
    quant_matrix
    quant_row
    quant_vector
    quantized
    reduce
    row_grad
    sample
    sort
    ternary
    train
    unary
    CACHE INTERNAL "")

# What the modules include, as they spell it. Embedded as source for the run-time compilers.
set(TL_KERNEL_HEADERS
    attention_scores.h
    decode_attention.h
    decode_product.h
    decode_clerk.h
    decode_room.h
    decode_rows.h
    elementary.h
    functors.h
    gpu.h
    gpu_args.h
    gpu_cache.h
    gpu_conv.h
    gpu_decode.h
    gpu_elementwise.h
    gpu_host.h
    gpu_ids.h
    gpu_kv.h
    gpu_matmul.h
    gpu_mma.h
    gpu_order.h
    gpu_quant.h
    gpu_reduce.h
    gpu_sample.h
    gpu_sort.h
    gpu_together.h
    gpu_types.h
    gpu_warp.h
    line_sums.h
    quant_blocks.h
    quant_dot.h
    quant_encode.h
    quant_grids.h
    quant_halves.h
    quant_words.h
    random_numbers.h
    read_ids.h
    row_ids.h
    row_math.h
    train_math.h
    tl/base/float_bits.h
    tl/kernels/elementwise.h
    tl/runtime/fault.h)

# Machine code for the generations in use, and PTX at both ends: the oldest for what is between (and
# before sm_80), the newest for devices that are not out yet. Code of sm_80 runs on sm_86 and sm_89 as
# it is.
set(TL_NVIDIA_TARGETS sm_80 sm_90 sm_100 sm_120 compute_75 compute_120
    CACHE STRING "NVIDIA architectures to compile kernels for, or native: those of this machine")
set(TL_AMD_TARGETS gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1101 gfx1102 gfx1151 gfx1200 gfx1201
    CACHE STRING "AMD architectures to compile kernels for, or native: those of this machine")
set(TL_KERNEL_DIR ${PROJECT_SOURCE_DIR}/build/kernels
    CACHE PATH "Folder for GPU images, shared by all build trees")
set(TL_KERNEL_JOBS "" CACHE STRING "GPU images compiled at a time; empty: the build tool's default")

set(TL_KERNEL_SOURCE_DIR ${PROJECT_SOURCE_DIR}/src/kernels CACHE INTERNAL "")

# ---- compilers

find_program(TL_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin PATHS /usr/local/cuda/bin
             DOC "CUDA compiler for kernels")
find_program(TL_HIP_CLANG NAMES clang++-19 clang++-20 clang++-21 DOC "Clang for AMD kernels")
find_program(TL_HIP_LLD NAMES ld.lld-19 ld.lld-20 ld.lld-21 DOC "The linker that clang needs for AMD")
mark_as_advanced(TL_NVCC TL_HIP_CLANG TL_HIP_LLD)
set(tl_ccache ${TL_CCACHE})
if(NOT tl_ccache)
  set(tl_ccache "")
endif()

# Keeps of `targets` those in `known` and says which are left out. A compiler that does not say what
# it knows is asked for everything.
function(tl_keep_known_targets targets known compiler)
  if(NOT known)
    return()
  endif()
  set(kept ${${targets}})
  foreach(target IN LISTS ${targets})
    string(REPLACE "compute_" "sm_" code ${target})
    if(NOT code IN_LIST known)
      list(REMOVE_ITEM kept ${target})
      message(STATUS "GPU kernels: ${compiler} does not know ${target}, which is left out")
    endif()
  endforeach()
  set(${targets} ${kept} PARENT_SCOPE)
endfunction()

# `targets` is native: the GPUs of this machine, perhaps none.
function(tl_find_native_targets targets vendor)
  if(${targets} STREQUAL "native")
    execute_process(COMMAND ${PROJECT_SOURCE_DIR}/tools/native_targets.sh ${vendor}
                    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE)
    string(REPLACE "\n" ";" found "${found}")
    set(${targets} ${found} PARENT_SCOPE)
  endif()
endfunction()

set(tl_nvidia_targets ${TL_NVIDIA_TARGETS})
tl_find_native_targets(tl_nvidia_targets nvidia)
if(TL_NVCC)
  execute_process(COMMAND ${TL_NVCC} --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
  string(REGEX MATCHALL "sm_[0-9a-z]+" known "${known}")
  tl_keep_known_targets(tl_nvidia_targets "${known}" nvcc)
else()
  set(tl_nvidia_targets "")
  message(STATUS "GPU kernels: no nvcc: NVIDIA kernels come from NVRTC at run time only")
endif()

set(tl_amd_targets ${TL_AMD_TARGETS})
tl_find_native_targets(tl_amd_targets amd)
if(TL_HIP_CLANG AND TL_HIP_LLD)
  execute_process(COMMAND ${TL_HIP_CLANG} --target=amdgcn-amd-amdhsa -nogpulib --print-supported-cpus
                  OUTPUT_VARIABLE known ERROR_VARIABLE known)
  string(REGEX MATCHALL "gfx[0-9a-f]+" known "${known}")
  tl_keep_known_targets(tl_amd_targets "${known}" ${TL_HIP_CLANG})
else()
  set(tl_amd_targets "")
  message(STATUS "GPU kernels: no clang++-19 with lld-19: AMD kernels come from hipRTC at run time only")
endif()
if(TL_SANITIZE)
  # No GPU runs these builds' code, and the images are the same in all of them; the simulated GPU has its own.
  set(tl_nvidia_targets "")
  set(tl_amd_targets "")
endif()
list(LENGTH tl_nvidia_targets nvidia_count)
list(LENGTH tl_amd_targets amd_count)
message(STATUS "GPU kernels: ${nvidia_count} NVIDIA and ${amd_count} AMD targets, in ${TL_KERNEL_DIR}")

# ---- images

# The file of an image in `folder`, and its kind, by the name of the target.
function(tl_image_file module target file kind)
  if(target MATCHES "^gfx")
    set(ending hsaco)
  elseif(target MATCHES "^compute_")
    set(ending ptx)
  else()
    set(ending cubin)
  endif()
  set(${file} ${TL_KERNEL_DIR}/images/${module}.${target}.${ending} PARENT_SCOPE)
  set(${kind} ${ending} PARENT_SCOPE)
endfunction()

set(tl_images "")
set(tl_pack_arguments "")
foreach(module IN LISTS TL_KERNEL_MODULES)
  foreach(target IN LISTS tl_nvidia_targets tl_amd_targets)
    tl_image_file(${module} ${target} file kind)
    list(APPEND tl_images ${file})
    string(APPEND tl_pack_arguments "--image\n${module}:${target}:${kind}:${file}\n")
  endforeach()
endforeach()

if(tl_images)
  # Always runs and is quick when there is nothing to do; a lock keeps build trees apart. An image
  # that did not change keeps its time, so nothing behind it is made again.
  add_custom_target(tl_gpu_images
    COMMAND ${CMAKE_COMMAND}
      -D "folder=${TL_KERNEL_DIR}" -D "source=${PROJECT_SOURCE_DIR}"
      -D "generator=${CMAKE_GENERATOR}" -D "make_program=${CMAKE_MAKE_PROGRAM}"
      -D "modules=${TL_KERNEL_MODULES}" -D "jobs=${TL_KERNEL_JOBS}"
      -D "nvcc=${TL_NVCC}" -D "nvidia_targets=${tl_nvidia_targets}"
      -D "clang=${TL_HIP_CLANG}" -D "amd_targets=${tl_amd_targets}" -D "ccache=${tl_ccache}"
      -P ${PROJECT_SOURCE_DIR}/cmake/build_gpu_images.cmake
    BYPRODUCTS ${tl_images}
    COMMENT "GPU images"
    USES_TERMINAL
    VERBATIM)
endif()

# ---- the pack

set(tl_pack_inputs ${tl_images})
if(tl_images)
  list(APPEND tl_pack_inputs tl_gpu_images)
endif()
foreach(module IN LISTS TL_KERNEL_MODULES)
  set(file ${TL_KERNEL_SOURCE_DIR}/${module}.cu)
  list(APPEND tl_pack_inputs ${file})
  string(APPEND tl_pack_arguments "--source\n${module}.cu:${file}\n")
endforeach()
foreach(header IN LISTS TL_KERNEL_HEADERS)
  if(header MATCHES "^tl/")
    set(file ${PROJECT_SOURCE_DIR}/include/${header})
  else()
    set(file ${TL_KERNEL_SOURCE_DIR}/${header})
  endif()
  list(APPEND tl_pack_inputs ${file})
  string(APPEND tl_pack_arguments "--source\n${header}:${file}\n")
endforeach()

set(TL_KERNEL_PACK ${PROJECT_BINARY_DIR}/kernels.tlpack)
# Small is for what people install; a build that is only tested should be there soon.
set(tl_quick_pack "--level\n1\n")
if(TL_SANITIZE)
  string(PREPEND tl_pack_arguments "${tl_quick_pack}")
endif()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/kernels.tlpack.args CONTENT "${tl_pack_arguments}" @ONLY)
add_custom_command(OUTPUT ${TL_KERNEL_PACK}
  COMMAND tl-pack ${TL_KERNEL_PACK} @${PROJECT_BINARY_DIR}/kernels.tlpack.args
  DEPENDS tl-pack ${PROJECT_BINARY_DIR}/kernels.tlpack.args ${tl_pack_inputs}
  COMMENT "Packing GPU kernels"
  VERBATIM)
add_custom_target(tl_kernel_pack DEPENDS ${TL_KERNEL_PACK})

# ---- kernels as host code, for the simulated GPU

# The modules that tests of this build tree launch, by the number of lanes (tests/CMakeLists.txt): with sanitizers ops run
# with 32, and not at all under ThreadSanitizer.
set(TL_SIM_MODULES_32 ${TL_KERNEL_MODULES} CACHE INTERNAL "")
set(TL_SIM_MODULES_64 ${TL_KERNEL_MODULES} CACHE INTERNAL "")
if(TL_SANITIZE)
  set(TL_SIM_MODULES_64 cast fill CACHE INTERNAL "")
endif()
if(TL_SANITIZE MATCHES "thread")
  set(TL_SIM_MODULES_32 cast fill CACHE INTERNAL "")
endif()

# Compiles these modules with this build's own compiler and flags, sanitizers included, for warps of
# `warp` lanes: targets tl_host_<module>_<warp>.
function(tl_add_host_kernels warp)
  foreach(module IN LISTS TL_SIM_MODULES_${warp})
    set(source ${TL_KERNEL_SOURCE_DIR}/${module}.cu)
    # One entry per kernel, by which the simulator launches it without knowing its parameters.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} lines REGEX "^GPU_KERNEL void [a-z0-9_]+\\(")
    set(text "#include \"${source}\"\n\nextern \"C\" {\n")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^GPU_KERNEL void ([a-z0-9_]+)\\(.*" "\\1" kernel "${line}")
      string(APPEND text
        "extern const gpu_host::Entry gpu_host_entry_${kernel};\n"
        "const gpu_host::Entry gpu_host_entry_${kernel} = gpu_host::EntryOf<&${kernel}>::value;\n")
    endforeach()
    string(APPEND text "}\n")
    set(generated ${PROJECT_BINARY_DIR}/host_kernels/${module}_${warp}.cpp)
    file(CONFIGURE OUTPUT ${generated} CONTENT "${text}" @ONLY)

    set(library tl_host_${module}_${warp})
    add_library(${library} MODULE ${generated})
    target_compile_definitions(${library} PRIVATE GPU_HOST_WARP=${warp})
    if(TL_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      # Arguments that a launch leaves out are null, and kernels may compute places in them that they do not read.
      target_compile_options(${library} PRIVATE -fno-sanitize=pointer-overflow)
    endif()
    target_include_directories(${library} PRIVATE
      ${TL_KERNEL_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
    # GCC would make statics of templates unique in the process: two modules would share them.
    target_compile_options(${library} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
    # A product and a sum are fused where the source says so and nowhere else, as on GPUs. Nobody
    # waits for these kernels; the build would for their optimisation.
    target_compile_options(${library} PRIVATE -ffp-contract=off -O1)
    target_link_libraries(${library} PRIVATE tl::strict)
    set_target_properties(${library} PROPERTIES
      PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/host_kernels)
  endforeach()
endfunction()

# The pack for the simulated GPU, under the names its devices report: with 32 lanes sim32 (ROCm) and
# sm_932 (CUDA), with 64 lanes sim64 and sm_964. Target tl_sim_pack; tests find the file's name in
# TL_SIM_PACK.
function(tl_add_sim_pack)
  set(arguments "${tl_quick_pack}")
  set(inputs "")
  foreach(warp 32 64)
    tl_add_host_kernels(${warp})
    foreach(module IN LISTS TL_SIM_MODULES_${warp})
      set(file ${PROJECT_BINARY_DIR}/host_kernels/tl_host_${module}_${warp}.so)
      list(APPEND inputs tl_host_${module}_${warp})
      foreach(architecture sim${warp} sm_9${warp})
        string(APPEND arguments "--image\n${module}:${architecture}:host:${file}\n")
      endforeach()
    endforeach()
  endforeach()
  set(pack ${PROJECT_BINARY_DIR}/sim.tlpack)
  file(CONFIGURE OUTPUT ${pack}.args CONTENT "${arguments}" @ONLY)
  add_custom_command(OUTPUT ${pack}
    COMMAND tl-pack ${pack} @${pack}.args
    DEPENDS tl-pack ${pack}.args ${inputs}
    COMMENT "Packing kernels for the simulated GPU"
    VERBATIM)
  add_custom_target(tl_sim_pack ALL DEPENDS ${pack})
  set(TL_SIM_PACK ${pack} PARENT_SCOPE)
endfunction()
