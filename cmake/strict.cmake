# tl::strict: what every target of ours is compiled with. It is exported with the package because
# static libraries name what they link to, but all it carries there is the language level.
add_library(tl_strict INTERFACE)
add_library(tl::strict ALIAS tl_strict)
target_compile_features(tl_strict INTERFACE cxx_std_20)

set(tl_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 finds overlapping copies in `text + std::string`, where there are none (GCC bug 105651).
  list(APPEND tl_warnings -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND TL_SANITIZE)
  # The code that sanitizers add confuses GCC about what was set; the release build still asks.
  list(APPEND tl_warnings -Wno-maybe-uninitialized)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # What GCC's -Wconversion leaves out for C++: counts meet indices everywhere here. And std::stable_sort of GCC 12's
  # library uses what C++17 deprecates; and sources name warnings of GCC's to turn them off.
  list(APPEND tl_warnings -Wno-sign-conversion -Wno-deprecated-declarations -Wno-unknown-warning-option)
endif()
# Names of one source shadow those of another in its group, and GCC takes a source in a group for a header.
foreach(warning shadow macro-redefined subobject-linkage)
  list(APPEND tl_warnings "$<$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>:-Wno-${warning}>")
endforeach()
if(TL_WERROR)
  list(APPEND tl_warnings -Werror)
endif()
target_compile_options(tl_strict INTERFACE "$<BUILD_INTERFACE:${tl_warnings}>")

if(TL_STRESS)
  # In the public headers too, so that a program that includes them sees the same types.
  target_compile_definitions(tl_strict INTERFACE $<BUILD_INTERFACE:TL_STRESS=1>)
endif()

if(TL_SANITIZE)
  string(REPLACE "," ";" tl_sanitizers "${TL_SANITIZE}")
  # Sanitizers go to everything in the build, simulated drivers and kernels included: memory that
  # one side sees and the other does not gives false reports.
  add_compile_options(-fsanitize=${TL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND TL_SANITIZE MATCHES "undefined")
    # Functions of drivers are called through tables that spell the vendors' handles as void*.
    add_compile_options(-fno-sanitize=function)
  endif()
  add_link_options(-fsanitize=${TL_SANITIZE})
  # Loops that are otherwise compiled for several instruction sets are compiled for this machine's (src/ops/cpu/targets.h).
  add_compile_definitions(HWY_COMPILE_ONLY_STATIC)
endif()

# Loops that the compiler turns into vector code. Nothing in them looks at errno or floating-point flags; a product and a
# sum are fused where the source says so and nowhere else, so that results are those of every other device. With
# sanitizers the code in between keeps them from being vector code whatever is asked.
set(tl_loop_options -fno-math-errno -fno-trapping-math -ffp-contract=off)
if(TL_SANITIZE)
  list(PREPEND tl_loop_options -O1)
else()
  list(PREPEND tl_loop_options -O3)
endif()
