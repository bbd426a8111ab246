# SPDX-License-Identifier: MIT
# CPack runs this between installing the files and packing them: what Debian's policy asks for.
set(share ${CPACK_TEMPORARY_DIRECTORY}/usr/share)
set(doc ${share}/doc/ljprof)

# Without the file's name and time, so that each build gives the same bytes.
function(compress)
	execute_process(COMMAND gzip -9n ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(GLOB pages ${share}/man/man1/*.1)
compress(${pages})
file(RENAME ${doc}/NEWS.md ${doc}/changelog)

execute_process(COMMAND date -R --date=@$ENV{SOURCE_DATE_EPOCH} OUTPUT_VARIABLE date
	OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(version ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
file(WRITE ${doc}/changelog.Debian "ljprof (${version}) ${CPACK_LJPROF_SUITE}; urgency=medium

  * Package version ${CPACK_PACKAGE_VERSION}; changelog.gz says what is new.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
compress(${doc}/changelog ${doc}/changelog.Debian)

# The license's text is a paragraph there: its lines are indented, empty ones are a dot.
file(READ ${doc}/LICENSE license)
string(REGEX MATCH "Copyright \\(c\\) ([^\n]*)" _ "${license}")
set(holder "${CMAKE_MATCH_1}")
string(REGEX REPLACE "^.*Copyright [^\n]*\n\n" "" license "${license}")
string(STRIP "${license}" license)
string(REGEX REPLACE "\n\n" "\n.\n" license "${license}")
string(REPLACE "\n" "\n " license "${license}")
file(WRITE ${doc}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ljprof

Files: *
Copyright: ${holder}
License: Expat

License: Expat
 ${license}
")
file(REMOVE ${doc}/LICENSE)
