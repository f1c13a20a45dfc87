# Installs the library to a fresh prefix, then builds and runs examples/use_package against it, as a
# user would. Run by ctest: cmake -D SOURCE=... -D BINARY=... -D WORK=... -D COMPILER=... -P this.
foreach(name SOURCE BINARY WORK COMPILER)
  if(NOT DEFINED ${name})
    message(FATAL_ERROR "package_test: -D ${name}=... is missing")
  endif()
endforeach()

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    string(JOIN " " command ${ARGV})
    message(FATAL_ERROR "package_test: '${command}' gave ${code}:\n${out}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BINARY} --prefix ${WORK}/prefix)

# A header that no header set names would be missing from the package.
file(GLOB_RECURSE headers RELATIVE ${SOURCE}/include ${SOURCE}/include/tl/*.h)
foreach(header IN LISTS headers)
  if(NOT EXISTS ${WORK}/prefix/include/${header})
    message(SEND_ERROR "package_test: include/${header} was not installed")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${SOURCE}/examples/use_package -B ${WORK}/build -G Ninja
    -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER=${COMPILER}
    -D CMAKE_PREFIX_PATH=${WORK}/prefix)
# Nothing of the source tree may be needed once the library is installed.
file(READ ${WORK}/build/build.ninja ninja)
string(FIND "${ninja}" "-I${SOURCE}" leak)
if(NOT leak EQUAL -1)
  message(FATAL_ERROR "package_test: the example compiles with headers of the source tree")
endif()
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/use_package)
string(FIND "${output}" "shared: yes" found)
if(found EQUAL -1)
  message(FATAL_ERROR "package_test: the example did not say 'shared: yes':\n${output}")
endif()
run(${WORK}/prefix/bin/tl --version)
