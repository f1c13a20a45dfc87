# Brings the shared GPU images up to date: run with cmake -P by every build tree, see kernels.cmake.
# One at a time: the project in ${folder} has one log of what is built, which two builds would spoil.
file(MAKE_DIRECTORY ${folder})
file(LOCK ${folder}/lock TIMEOUT 3600 RESULT_VARIABLE problem)
if(NOT problem EQUAL 0)
  message(FATAL_ERROR "GPU images: cannot lock ${folder}/lock: ${problem}")
endif()

# Configured again only when something about it changed.
string(JOIN "\n" settings ${source} ${generator} ${make_program} "${modules}" ${nvcc}
       "${nvidia_targets}" ${clang} "${amd_targets}" "${ccache}")
set(known "")
if(EXISTS ${folder}/settings)
  file(READ ${folder}/settings known)
endif()
if(NOT known STREQUAL settings)
  file(REMOVE ${folder}/settings)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${source}/cmake/gpu_images -B ${folder} -G ${generator} --no-warn-unused-cli
      "-DCMAKE_MAKE_PROGRAM=${make_program}" "-DTL_SOURCE_DIR=${source}" "-DTL_MODULES=${modules}"
      "-DTL_NVCC=${nvcc}" "-DTL_NVIDIA_TARGETS=${nvidia_targets}"
      "-DTL_HIP_CLANG=${clang}" "-DTL_AMD_TARGETS=${amd_targets}" "-DTL_CCACHE=${ccache}"
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE ${folder}/settings "${settings}")
endif()

set(parallel "")
if(jobs)
  set(parallel --parallel ${jobs})
endif()
# Quiet when there is nothing to do. What was in the environment for the outer make is not for ours.
execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=MAKEFLAGS --unset=MAKELEVEL --unset=MFLAGS
                        ${CMAKE_COMMAND} --build ${folder} ${parallel}
                COMMAND_ERROR_IS_FATAL ANY)
