# `cpack -G DEB` in a build folder makes the Debian package. Everything Debian wants to know is here and in
# systemd/debian/; what is installed where is in systemd/CMakeLists.txt. With SOURCE_DATE_EPOCH set, two runs over the
# same build give the same bytes.

set(debian ${PROJECT_SOURCE_DIR}/systemd/debian)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fopd)
set(CPACK_PACKAGE_VENDOR "fopd")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "fopd maintainers <maintainers@fopd.example>")
set(CPACK_STRIP_FILES ON)

# An absolute /etc beside the prefix /usr needs DESTDIR.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_HOMEPAGE ${PROJECT_HOMEPAGE_URL})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "storage-server daemon with administrator-chosen scheduling")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"fopd stores objects on the disks of its node. It takes file operation packets
from clients, orders them by a policy the administrator chose, and runs each
as a non-blocking state machine on a reactor of its own core.

The package has the daemon, the command fopctl and the library libfopd.
libfabric1 is needed for addresses that begin with verbs:// or ofi+tcp://.")
# Shared libraries are found by dpkg-shlibdeps, but for libfabric, which is loaded when an address needs it; the others
# are what the maintainer scripts call.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS
    "systemd | systemd-standalone-sysusers | systemd-sysusers, systemd | systemd-standalone-tmpfiles | systemd-tmpfiles")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libfabric1 (>= 1.17)")
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    ${debian}/conffiles ${debian}/postinst ${debian}/prerm ${debian}/postrm ${debian}/triggers)
# Who links with libfopd depends on this package.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)

include(CPack)
