# Sources in groups (TL_GROUP_SOURCES): a group is compiled as one source that includes them, so what their headers say is
# read once. ON, for the builds with sanitizers: all sources. OUTER, for the release build of `make test`: the program's
# and the tests', whose headers are the largest; the library's are compiled one by one there, so that what a source
# forgets to include is seen.
#
# Two sources of one group share their unnamed namespace. Where both have something of the same name there, one of them
# stands in this list and is compiled alone. "redefinition of" or "ambiguous" in such a build: give the new one a name
# that says more, or add the source here.
set(TL_APART
    src/cli/demo_tensors.cpp
    src/grad/rules/conv.cpp
    src/grad/rules/reduce.cpp
    src/grad/rules/unary.cpp
    src/lang/builtins/dtype.cpp
    src/lang/builtins/graph.cpp
    src/lang/builtins/graph_layers.cpp
    src/lang/builtins/knowledge.cpp
    src/lang/builtins/learning.cpp
    src/lang/builtins/logic.cpp
    src/lang/builtins/math.cpp
    src/lang/builtins/model.cpp
    src/lang/builtins/network.cpp
    src/lang/builtins/reduce.cpp
    src/lang/builtins/rope.cpp
    src/lang/builtins/views.cpp
    src/lang/convert.cpp
    src/lang/learn_settings.cpp
    src/lang/logic_forward.cpp
    src/lang/logic_statements.cpp
    src/lang/parser.cpp
    src/lang/source.cpp
    src/lang/tensor_operators.cpp
    src/lang/value.cpp
    src/lang/value_text.cpp
    src/logic/plan.cpp
    src/model/convert_vocab_spm.cpp
    src/model/engine.cpp
    src/model/gguf_value.cpp
    src/model/gpu/decode_program.cpp
    src/model/jinja/filters_list.cpp
    src/model/jinja/filters_text.cpp
    src/model/jinja/methods.cpp
    src/model/jinja/parser.cpp
    src/model/jinja/statements.cpp
    src/model/jinja/tests.cpp
    src/model/pre_tokenizer.cpp
    src/model/quantize.cpp
    src/model/tokenizer_vocabulary.cpp
    src/ops/cpu/gemm_amx.cpp
    src/ops/cpu/pool.cpp
    src/ops/cpu/sort.cpp
    src/ops/gpu/indexing.cpp
    src/ops/gpu/reduce.cpp
    src/ops/gpu/scan.cpp
    src/ops/gpu/sort.cpp
    src/ops/join.cpp
    src/ops/reduce.cpp
    src/runtime/driver/cuda.cpp
    src/runtime/driver/cudnn.cpp
    src/runtime/driver/find.cpp
    src/runtime/driver/hip.cpp
    src/runtime/driver/miopen.cpp
    src/runtime/driver/rocblas.cpp
    src/runtime/kernel_pack.cpp
    src/runtime/module_loader.cpp
    src/runtime/module_store.cpp
    src/runtime/read_into.cpp
    src/tensor/safetensors_header.cpp
    tests/grad/attention_grad_test.cpp
    tests/grad/loss_test.cpp
    tests/model/chat_template_test.cpp
    tests/ops/binary_test.cpp
    tests/ops/conv_test.cpp
    tests/ops/copy_test.cpp
    tests/ops/coverage.cpp
    tests/ops/einsum_test.cpp
    tests/ops/every_dtype_test.cpp
    tests/ops/join_test.cpp
    tests/ops/matmul_test.cpp
    tests/ops/pool_test.cpp
    tests/ops/reduce_test.cpp
    tests/ops/resize_test.cpp
    tests/ops/scan_test.cpp
    tests/ops/softmax_test.cpp
    tests/ops/sort_test.cpp
    tests/ops/unary_test.cpp
    tests/quant/product_test.cpp
    tests/quant/qtensor_test.cpp
    tests/runtime/kernel_pack_test.cpp
    tests/runtime/module_store_test.cpp
    tests/runtime/read_into_test.cpp
    tests/runtime/weak_memory_test.cpp
    tests/simgpu/simgpu_kernel_test.cpp
    tests/simgpu/simgpu_test.cpp
    tests/tensor/layout_test.cpp
    tests/tensor/tensor_test.cpp)

if(NOT TL_GROUP_SOURCES STREQUAL "OUTER")
  set(CMAKE_UNITY_BUILD ON)
endif()
set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)

# At the end of the top folder's file: properties of sources belong to the folder that compiles them.
function(tl_keep_apart)
  foreach(source IN LISTS TL_APART)
    string(REGEX MATCH "^(src/[a-z]+|tests/simgpu|tests)/" folder ${source})
    if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${source})
      message(FATAL_ERROR "cmake/groups.cmake keeps ${source} apart, which is not there")
    endif()
    if(folder MATCHES "^tests" AND NOT TL_BUILD_TESTS)
      continue()
    endif()
    set_source_files_properties(${PROJECT_SOURCE_DIR}/${source} DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}
      PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
endfunction()
