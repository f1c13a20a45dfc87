# Installs the library to a fresh prefix, then builds and runs examples against it, as a user would: examples/use_package,
# the chat of examples/cpp with a tiny model, examples/c and, where there is NumPy, examples/python. Run by ctest:
#   cmake -D SOURCE=... -D BINARY=... -D WORK=... -D COMPILER=... -D PYTHON=... -D NUMPY_PYTHON=... -P this
foreach(name SOURCE BINARY WORK COMPILER PYTHON)
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

# build_example(<folder> [TARGET <name>]): configures and builds a folder of examples in ${WORK}/<folder>.
function(build_example folder)
  cmake_parse_arguments(PARSE_ARGV 1 example "" "TARGET" "")
  set(target "")
  if(example_TARGET)
    set(target --target ${example_TARGET})
  endif()
  run(${CMAKE_COMMAND} -S ${SOURCE}/examples/${folder} -B ${WORK}/${folder} -G Ninja
      -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER=${COMPILER}
      -D CMAKE_PREFIX_PATH=${WORK}/prefix)
  # Nothing of the source tree may be needed once the library is installed.
  file(READ ${WORK}/${folder}/build.ninja ninja)
  string(FIND "${ninja}" "-I${SOURCE}/include" leak)
  if(NOT leak EQUAL -1)
    message(FATAL_ERROR "package_test: examples/${folder} compiles with headers of the source tree")
  endif()
  run(${CMAKE_COMMAND} --build ${WORK}/${folder} ${target})
endfunction()

function(expect_output what pattern)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "package_test: ${what} did not print ${pattern}:\n${output}")
  endif()
endfunction()

build_example(use_package)
run(${WORK}/use_package/use_package)
expect_output(use_package "shared: yes")

# A chat of two turns; the second knows the first one's tokens. The weights are random and so are the answers: a token of
# one may take a dozen when it is read again, and the context has room for the worst of them.
run(${PYTHON} ${SOURCE}/tools/make_model.py --layers 2 --width 64 --vocabulary 320 --feed-forward 64 --heads 2
    --kv-heads 2 --context 8192 ${WORK}/model.gguf)
build_example(cpp TARGET example_chat)
file(WRITE ${WORK}/said "Hello\nAnd you?\n")
execute_process(COMMAND ${WORK}/cpp/example_chat ${WORK}/model.gguf INPUT_FILE ${WORK}/said
  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "package_test: the chat gave ${code}:\n${output}")
endif()
expect_output("the chat" "> .*tokens, 0 of the prompt's [0-9]+ known before.*> .*tokens, [1-9][0-9]* of the prompt's")
execute_process(COMMAND ${WORK}/cpp/example_chat ${WORK}/none.gguf RESULT_VARIABLE code ERROR_VARIABLE output)
if(code EQUAL 0)
  message(FATAL_ERROR "package_test: the chat took a model that is not there")
endif()
expect_output("the chat" "error: .*none.gguf")

build_example(c)
run(${WORK}/c/attention)
expect_output("attention in C" "1.340 0.330\n.*live bytes: 0\n")

if(NUMPY_PYTHON)
  file(GLOB library ${WORK}/prefix/lib*/libtallow_c.so ${WORK}/prefix/lib/*/libtallow_c.so)
  run(${CMAKE_COMMAND} -E env TALLOW_LIBRARY=${library} PYTHONDONTWRITEBYTECODE=1
      ${NUMPY_PYTHON} ${SOURCE}/examples/python/demo.py)
  expect_output("the demo in Python" "distances: \\[0.0, 5.0, 10.0\\]")
else()
  message(STATUS "package_test: no Python with NumPy: examples/python was not run")
endif()

run(${WORK}/prefix/bin/tl --version)
