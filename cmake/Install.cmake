# cmake --install BUILD --prefix P
#
# The program goes to P/lib/trainyard/bin and the Python package to P/lib/trainyard/python, where the program looks for it;
# P/bin/trainyard links to the program. So P can be any folder, and can be moved. The program itself prints the man page and
# the completions.
set(home lib/trainyard)
install(TARGETS trainyard RUNTIME DESTINATION ${home}/bin)
if(TARGET trainyard_native)
  install(TARGETS trainyard_native LIBRARY DESTINATION ${home}/python/trainyard)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/trainyard DESTINATION ${home}/python
          FILES_MATCHING PATTERN *.py PATTERN py.typed PATTERN __pycache__ EXCLUDE)
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples DESTINATION share/doc/trainyard USE_SOURCE_PERMISSIONS
        PATTERN __pycache__ EXCLUDE PATTERN fetch-mnist EXCLUDE)  # which calls scripts/mnist
install(CODE [[
  get_filename_component(to "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}" ABSOLUTE)
  file(MAKE_DIRECTORY "${to}/bin")
  file(CREATE_LINK ../lib/trainyard/bin/trainyard "${to}/bin/trainyard" SYMBOLIC)
  function(write file)
    get_filename_component(folder "${to}/share/${file}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    execute_process(COMMAND "${to}/bin/trainyard" ${ARGN} OUTPUT_FILE "${to}/share/${file}" COMMAND_ERROR_IS_FATAL ANY)
  endfunction()
  write(man/man1/trainyard.1 man)
  write(bash-completion/completions/trainyard completion bash)
  write(zsh/site-functions/_trainyard completion zsh)
  write(fish/vendor_completions.d/trainyard.fish completion fish)
]])
