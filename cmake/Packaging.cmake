# `cpack -G DEB` in a build folder makes the Debian packages, one for each component: fopd, fopctl, libfopd0, libfopd-dev,
# fopd-ofi.
# Everything Debian wants to know is here and in systemd/debian/; what is installed where is in systemd/CMakeLists.txt.
# With SOURCE_DATE_EPOCH set, two runs over the same build give the same bytes.

set(debian ${PROJECT_SOURCE_DIR}/systemd/debian)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fopd)
set(CPACK_PACKAGE_VENDOR "fopd")
# Later than the last release, which is one package in place of all of these. A release has PROJECT_VERSION alone.
set(package_version ${PROJECT_VERSION}+1)
set(CPACK_PACKAGE_VERSION ${package_version})
set(CPACK_PACKAGE_CONTACT "fopd maintainers <maintainers@fopd.example>")
set(CPACK_STRIP_FILES ON)

# An absolute /etc beside the prefix /usr needs DESTDIR.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL daemon client library development ofi)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_HOMEPAGE ${PROJECT_HOMEPAGE_URL})
# Each package has a summary of its own, which CPack would put below this one.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
# Shared libraries are found by dpkg-shlibdeps.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Who links with libfopd depends on its package.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(needs_plug_in "fopd-ofi is needed for addresses that begin with verbs:// or ofi+tcp://.")

# fopd_add_package(<component> NAME <package> SECTION <section> MULTI_ARCH <same|foreign> SUMMARY <text> TEXT <text>
#                  [DEPENDS|SUGGESTS|ENHANCES|BREAKS|REPLACES <packages>]... [CONTROL <files...>])
function(fopd_add_package component)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;SECTION;MULTI_ARCH;SUMMARY;TEXT;DEPENDS;SUGGESTS;ENHANCES;BREAKS;REPLACES" "CONTROL")
    string(TOUPPER ${component} key)
    set(key CPACK_DEBIAN_${key})
    set(${key}_PACKAGE_NAME ${arg_NAME} PARENT_SCOPE)
    # CPack has no variable for Multi-Arch before 3.31. It writes values as they are, so a line can follow in one.
    set(${key}_PACKAGE_SECTION "${arg_SECTION}\nMulti-Arch: ${arg_MULTI_ARCH}" PARENT_SCOPE)
    set(${key}_DESCRIPTION "${arg_SUMMARY}\n${arg_TEXT}" PARENT_SCOPE)
    set(${key}_PACKAGE_CONTROL_EXTRA "${arg_CONTROL}" PARENT_SCOPE)
    foreach(field DEPENDS SUGGESTS ENHANCES BREAKS REPLACES)
        if(arg_${field})
            set(${key}_PACKAGE_${field} "${arg_${field}}" PARENT_SCOPE)
        endif()
    endforeach()
endfunction()

# The unit reloads by fopctl; the others are what the maintainer scripts call.
fopd_add_package(daemon NAME fopd SECTION admin MULTI_ARCH foreign
    SUMMARY "storage-server daemon with administrator-chosen scheduling"
    TEXT "fopd stores objects on the disks of its node. It takes file operation packets
from clients, orders them by a policy the administrator chose, and runs each
as a non-blocking state machine on a reactor of its own core.

The package has the daemon, its unit for systemd, alert rules and a dashboard
for monitoring, and the documentation.

${needs_plug_in}"
    DEPENDS "fopctl (= ${package_version}), systemd | systemd-standalone-sysusers | systemd-sysusers, systemd | systemd-standalone-tmpfiles | systemd-tmpfiles"
    SUGGESTS "fopd-ofi (= ${package_version})"
    CONTROL ${debian}/conffiles ${debian}/postinst ${debian}/prerm ${debian}/postrm)

# The package fopd of the first release has the files of the client and of the library.
set(undivided "fopd (<< 0.1.0+1~)")
fopd_add_package(client NAME fopctl SECTION admin MULTI_ARCH foreign
    SUMMARY "client and administration command of the storage server fopd"
    TEXT "fopctl stores and fetches the objects of a fopd over the network, and
administers the fopd of its own node. It needs no daemon on its node.

${needs_plug_in}"
    SUGGESTS "fopd-ofi (= ${package_version})"
    BREAKS "${undivided}" REPLACES "${undivided}")

# CPack makes a postinst and a postrm that call ldconfig, unless files of these names are listed. The trigger does that,
# and files that do not exist are left out.
fopd_add_package(library NAME libfopd0 SECTION libs MULTI_ARCH same
    SUMMARY "client library of the storage server fopd"
    TEXT "With libfopd, programs in C and C++ store and fetch the objects of a fopd
over the network.

${needs_plug_in}"
    SUGGESTS "fopd-ofi (= ${package_version})"
    BREAKS "${undivided}" REPLACES "${undivided}"
    CONTROL ${debian}/triggers none/postinst none/postrm)

fopd_add_package(development NAME libfopd-dev SECTION libdevel MULTI_ARCH same
    SUMMARY "client library of the storage server fopd (development files)"
    TEXT "With libfopd, programs in C and C++ store and fetch the objects of a fopd
over the network.

The package has the headers, the static library, the file for pkg-config and
a manual page."
    DEPENDS "libfopd0 (= ${package_version})"
    BREAKS "${undivided}" REPLACES "${undivided}")

# The plug-in works with programs of its own version only; they refuse another one.
set(other_versions)
foreach(package fopd fopctl libfopd0)
    list(APPEND other_versions "${package} (<< ${package_version})" "${package} (>> ${package_version})")
endforeach()
list(JOIN other_versions ", " other_versions)
fopd_add_package(ofi NAME fopd-ofi SECTION net MULTI_ARCH same
    SUMMARY "storage server fopd over libfabric"
    TEXT "With this plug-in, fopd, fopctl and programs with libfopd know addresses that
begin with verbs:// or ofi+tcp://. They load it, and libfabric, when they are
given such an address.

With ofi+tcp:// any host that reaches the port can end the daemon: see the
log, and security.md in the package fopd. tcp:// needs no plug-in."
    DEPENDS "libfabric1 (>= 1.17)"
    ENHANCES "fopd, fopctl, libfopd0"
    BREAKS "${other_versions}")

include(CPack)
