# cython: language_level=3, boundscheck=False, wraparound=False
"""The compiled half of `plain`: attributes of a plain dict as bytes, written in one go.

It takes what `plain` takes, if all names are ASCII and the dict is small, and gives the same bytes: names
ascending, every number in its shortest form. For everything else the answer is None, and `plain` goes on.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Next, PyDict_Size
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

cdef extern from "Python.h":
    int PyUnicode_CheckExact(object text)
    int PyUnicode_IS_COMPACT_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    void *PyUnicode_DATA(object text)
    int PyFloat_CheckExact(object value)
    double PyFloat_AS_DOUBLE(object value)
    int PyLong_CheckExact(object value)
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1

# Larger ones go the other way: the room for them is on the stack.
DEF MOST_ATTRIBUTES = 32
DEF MOST_BYTES = 4096
DEF MOST_NAME = 255


cdef inline uint8_t *_big_endian(uint8_t *to, uint64_t number, int size):
    cdef int i
    for i in range(size):
        to[i] = <uint8_t>(number >> (8 * (size - 1 - i)))
    return to + size


cdef inline uint8_t *_text(uint8_t *to, const uint8_t *data, Py_ssize_t length):
    if length < 32:
        to[0] = <uint8_t>(0xA0 | length)
        to += 1
    elif length < 256:
        to[0] = 0xD9
        to = _big_endian(to + 1, <uint64_t>length, 1)
    else:
        to[0] = 0xDA
        to = _big_endian(to + 1, <uint64_t>length, 2)
    memcpy(to, data, length)
    return to + length


cdef inline uint8_t *_integer(uint8_t *to, int64_t number):
    if number >= 0:
        if number < 128:
            to[0] = <uint8_t>number
            return to + 1
        if number < 256:
            to[0] = 0xCC
            return _big_endian(to + 1, <uint64_t>number, 1)
        if number < 65536:
            to[0] = 0xCD
            return _big_endian(to + 1, <uint64_t>number, 2)
        if number < 4294967296:
            to[0] = 0xCE
            return _big_endian(to + 1, <uint64_t>number, 4)
        to[0] = 0xCF
        return _big_endian(to + 1, <uint64_t>number, 8)
    if number >= -32:
        to[0] = <uint8_t>(number & 0xFF)
        return to + 1
    if number >= -128:
        to[0] = 0xD0
        return _big_endian(to + 1, <uint64_t>number, 1)
    if number >= -32768:
        to[0] = 0xD1
        return _big_endian(to + 1, <uint64_t>number, 2)
    if number >= -2147483648:
        to[0] = 0xD2
        return _big_endian(to + 1, <uint64_t>number, 4)
    to[0] = 0xD3
    return _big_endian(to + 1, <uint64_t>number, 8)


cdef inline bint _before(PyObject *one, PyObject *other):
    """Whether a name comes before another one, byte by byte."""
    cdef Py_ssize_t left = PyUnicode_GET_LENGTH(<object>one), right = PyUnicode_GET_LENGTH(<object>other)
    cdef int order = memcmp(
        PyUnicode_DATA(<object>one), PyUnicode_DATA(<object>other), left if left < right else right
    )
    return order < 0 if order else left < right


def encode(dict attributes):
    """What `Notification(attributes).encode()` gives, or None where this way is not clearly right."""
    cdef PyObject *names[MOST_ATTRIBUTES]
    cdef PyObject *values[MOST_ATTRIBUTES]
    cdef uint8_t room[MOST_BYTES]
    cdef PyObject *name
    cdef PyObject *value
    cdef Py_ssize_t count = PyDict_Size(attributes), place = 0, at = 0, i, length
    cdef uint8_t *to = room
    cdef uint8_t *end = room + MOST_BYTES
    cdef int overflow = 0
    cdef double real
    cdef uint64_t bits
    cdef long long number
    if count > MOST_ATTRIBUTES:
        return None
    while PyDict_Next(attributes, &place, &name, &value):
        if not PyUnicode_CheckExact(<object>name) or not PyUnicode_IS_COMPACT_ASCII(<object>name):
            return None
        length = PyUnicode_GET_LENGTH(<object>name)
        if length == 0 or length > MOST_NAME:
            return None
        i = at
        while i and _before(name, names[i - 1]):
            names[i] = names[i - 1]
            values[i] = values[i - 1]
            i -= 1
        names[i] = name
        values[i] = value
        at += 1
    if count < 16:
        to[0] = <uint8_t>(0x80 | count)
        to += 1
    else:
        to[0] = 0xDE
        to = _big_endian(to + 1, <uint64_t>count, 2)
    for i in range(count):
        length = PyUnicode_GET_LENGTH(<object>names[i])
        if end - to < length + 16:
            return None
        to = _text(to, <const uint8_t *>PyUnicode_DATA(<object>names[i]), length)
        value = values[i]
        if PyUnicode_CheckExact(<object>value):
            length = PyUnicode_GET_LENGTH(<object>value)
            if not PyUnicode_IS_COMPACT_ASCII(<object>value) or end - to < length + 8:
                return None
            to = _text(to, <const uint8_t *>PyUnicode_DATA(<object>value), length)
        elif PyFloat_CheckExact(<object>value):
            real = PyFloat_AS_DOUBLE(<object>value)
            if not real - real == 0.0:  # NaN and the infinities
                return None
            memcpy(&bits, &real, 8)
            to[0] = 0xCB
            to = _big_endian(to + 1, bits, 8)
        elif <object>value is True:
            to[0] = 0xC3
            to += 1
        elif <object>value is False:
            to[0] = 0xC2
            to += 1
        elif PyLong_CheckExact(<object>value):
            number = PyLong_AsLongLongAndOverflow(<object>value, &overflow)
            if overflow:
                return None
            to = _integer(to, number)
        else:
            return None
    return PyBytes_FromStringAndSize(<char *>room, to - room)


cdef extern from *:
    """
    /* All of a stretch are looked at without a question in between, which compilers do for many at a time: what
       is there makes it no slower. */
    static int palio_has_four(const unsigned char *at, Py_ssize_t positions, const unsigned char *four) {
        const unsigned char a = four[0], b = four[1], c = four[2], d = four[3];
        while (positions > 0) {
            Py_ssize_t i, stretch = positions < 256 ? positions : 256;
            unsigned char found = 0;
            for (i = 0; i < stretch; i++)
                found |= (unsigned char)((at[i] == a) & (at[i + 1] == b) & (at[i + 2] == c) & (at[i + 3] == d));
            if (found)
                return 1;
            at += stretch;
            positions -= stretch;
        }
        return 0;
    }
    """
    bint palio_has_four(const unsigned char *at, Py_ssize_t positions, const unsigned char *four)


def has_part(several, bytes part):
    """Whether the attributes of one of several notifications have four bytes within them."""
    cdef bytes one
    if PyBytes_GET_SIZE(part) != 4:
        raise ValueError("A part has four bytes.")
    cdef const unsigned char *four = <const unsigned char *>PyBytes_AS_STRING(part)
    for notification in several:
        one = notification.body.attributes
        if palio_has_four(<const unsigned char *>PyBytes_AS_STRING(one), PyBytes_GET_SIZE(one) - 3, four):
            return True
    return False
