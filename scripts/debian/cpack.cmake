# SPDX-License-Identifier: MIT
# What CPack puts into the package for Debian. scripts/package sets the LJPROF_ variables.
set(LJPROF_DEBIAN_RELEASE "1~local" CACHE STRING "Debian's part of the package's version")
set(LJPROF_DEBIAN_SUITE "unstable" CACHE STRING "The suite that the package is for")
set(LJPROF_MAINTAINER "The ljprof authors <ljprof@example.org>" CACHE STRING
	"Who maintains the package, as 'NAME <ADDRESS>'; nobody reads the default address")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "${LJPROF_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
	GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/finish.cmake)
set(CPACK_LJPROF_SUITE ${LJPROF_DEBIAN_SUITE})

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${LJPROF_DEBIAN_RELEASE})
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Debian 13 has it under a new name. --debuginfod loads it.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libdebuginfod1 | libdebuginfod1t64")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "sampling profiler for running LuaJIT processes")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
	"ljprof profiles running LuaJIT processes from outside: OpenResty, Tarantool,
game servers, DNS servers, editors. The process needs no rebuild, no restart
and no debug symbols. One call chain covers C, Lua, coroutines and compiled
code, and each Lua frame has its line.
.
ljtop shows the hottest functions live, ljrecord records a profile, ljreport
prints and compares profiles, and ljdump prints what a process does now.")
include(CPack)
