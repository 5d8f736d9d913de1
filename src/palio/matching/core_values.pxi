# Python's values in the core's form.

cdef int _value(value, Value *into) except -1:
    """A scalar in its one form; anything else is absent."""
    cdef Py_ssize_t length
    cdef int overflow
    kind = type(value)
    into.length = 0
    if kind is str:
        into.text = <const uint8_t *>PyUnicode_AsUTF8AndSize(value, &length)
        into.length = <uint32_t>length
        into.kind = KIND_STRING
    elif kind is float:
        into.kind = KIND_FLOAT
        into.real = <double>value
    elif kind is int:
        into.kind = KIND_INT
        into.integer = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow:
            into.integer = INT64_MAX if overflow > 0 else INT64_MIN
    elif kind is bool:
        into.kind = KIND_BOOL
        into.integer = value is True
    elif kind is bytes:
        into.kind = KIND_BYTES
        into.text = <const uint8_t *>PyBytes_AS_STRING(value)
        into.length = <uint32_t>PyBytes_GET_SIZE(value)
    elif kind is datetime:
        into.kind = KIND_TIME
        into.integer = microseconds(value)
    else:
        into.kind = KIND_ABSENT
    return 0


cdef class Reader:
    """Values of one notification or of one column, one after the other, with what they point at."""

    cdef Values values
    cdef Values elements  # of those that are lists
    cdef object held

    def __dealloc__(self):
        values_free(&self.values)
        values_free(&self.elements)

    cdef int begin(self, size_t count) except -1:
        """Forget what was read; make room for so many."""
        self.held = None
        self.values.count = self.elements.count = 0
        values_reserve(&self.values, count + 1)
        return 0

    cdef int read(self, value) except -1:
        """One more value; None is absent."""
        cdef Value *into = self.values.items + self.values.count
        cdef size_t start
        if type(value) is tuple:
            start = self.elements.count
            values_reserve(&self.elements, start + len(<tuple>value))
            for element in <tuple>value:
                self._scalar(element, self.elements.items + self.elements.count)
                self.elements.count += 1
            into.kind = KIND_LIST
            into.length = <uint32_t>len(<tuple>value)
            into.elements_at = start
        else:
            self._scalar(value, into)
        self.values.count += 1
        return 0

    cdef void end(self) noexcept:
        """Now that no more elements come, they stay where they are."""
        resolve_elements(&self.values, &self.elements)

    cdef int _scalar(self, value, Value *into) except -1:
        if type(value) is str:
            try:
                return _value(value, into)
            except UnicodeEncodeError:  # a lone surrogate, which no checked notification has
                raw = value.encode("utf-8", "surrogatepass")
            if self.held is None:
                self.held = []
            self.held.append(raw)
            into.kind = KIND_STRING
            into.text = <const uint8_t *>PyBytes_AS_STRING(raw)
            into.length = <uint32_t>PyBytes_GET_SIZE(raw)
            return 0
        return _value(value, into)
