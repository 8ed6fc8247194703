# Objects compiled for a newer instruction set must define no mergeable symbol outside their level's namespace: the linker
# could choose it for code that runs on an older processor.
#   cmake -DNM=nm -DLEVEL=avx512 -DOBJECTS=a.o;b.o -P level_symbols_test.cmake
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} --demangle ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" lines "${symbols}")
  foreach(line IN LISTS lines)
    if(line MATCHES "^[0-9a-f]+ [WVuw] " AND NOT line MATCHES "inlaid::kernels::${LEVEL}::")
      message(SEND_ERROR "${object}: ${line}")
    endif()
  endforeach()
endforeach()
