"""libfopd as Python calls it, for tests that need many calls of many threads at once."""

import ctypes
import os
import unittest

from fopd_process import IS_SANITIZED

LIBRARY = os.environ.get("LIBFOPD", "build/release/lib/libfopd.so")
OK, TRY_AGAIN, NO_SPACE = 0, 4, 9


class Fid(ctypes.Structure):
    _fields_ = [("high", ctypes.c_uint64), ("low", ctypes.c_uint64)]


class Result(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("bytes", ctypes.c_size_t), ("words", ctypes.c_char * 256)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("server", ctypes.c_char_p), ("key_file", ctypes.c_char_p),
                ("user", ctypes.c_char_p), ("job", ctypes.c_char_p), ("timeout_us", ctypes.c_uint64),
                ("token", ctypes.c_char_p)]


class NewObject(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("pool", ctypes.c_char_p),
                ("group", ctypes.c_char_p), ("mode", ctypes.c_uint32), ("no_replace", ctypes.c_int)]


class Space(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("total_bytes", ctypes.c_uint64), ("used_bytes", ctypes.c_uint64),
                ("free_bytes", ctypes.c_uint64), ("objects", ctypes.c_uint64)]

    def figures(self):
        return {"used": self.used_bytes, "free": self.free_bytes, "objects": self.objects}


class Objects:
    """A client. Each call waits for its end; several threads may make some."""

    def __init__(self, server, key_file, timeout_seconds):
        if IS_SANITIZED:
            raise unittest.SkipTest("Python cannot load a library with a sanitizer in it")
        self._library = ctypes.CDLL(LIBRARY)
        self._client = ctypes.c_void_p()
        options = Options()
        self._library.fopd_options_init_sized(ctypes.byref(options), ctypes.c_size_t(ctypes.sizeof(options)))
        options.server, options.key_file = server.encode(), str(key_file).encode()
        options.timeout_us = int(timeout_seconds * 1e6)
        why = Result()
        if self._library.fopd_open(ctypes.byref(options), ctypes.byref(self._client), ctypes.byref(why)) != OK:
            raise RuntimeError(why.words.decode())

    def close(self):
        client, self._client = self._client, None
        if client:
            self._library.fopd_close(client)

    def _call(self, name, *arguments):
        result = Result()
        getattr(self._library, name)(self._client, None, *arguments, ctypes.byref(result))
        return result.status, result.words.decode()

    def put(self, name, data):
        """The status, words, and the fid."""
        new, fid = NewObject(), Fid()
        self._library.fopd_new_object_init(ctypes.byref(new))
        new.name = name.encode()
        return *self._call("fopd_put_wait", ctypes.byref(new), data, ctypes.c_size_t(len(data)),
                           ctypes.byref(fid)), fid

    def write(self, fid, offset, data):
        return self._call("fopd_write_wait", ctypes.byref(fid), ctypes.c_uint64(offset), data,
                          ctypes.c_size_t(len(data)), 0)

    def append(self, fid, data):
        return self._call("fopd_append_wait", ctypes.byref(fid), data, ctypes.c_size_t(len(data)), None)

    def truncate(self, fid, size):
        return self._call("fopd_truncate_wait", ctypes.byref(fid), ctypes.c_uint64(size))

    def punch(self, fid, offset, size):
        return self._call("fopd_punch_wait", ctypes.byref(fid), ctypes.c_uint64(offset), ctypes.c_uint64(size))

    def remove(self, name):
        return self._call("fopd_remove_wait", None, name.encode())

    def space(self):
        space = Space()
        self._library.fopd_space_init(ctypes.byref(space))
        status, words = self._call("fopd_statfs_wait", None, ctypes.byref(space))
        if status != OK:
            raise RuntimeError(words)
        return space.figures()
