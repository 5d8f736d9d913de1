# Encoded notifications as columns, by native/projection.h.

cdef extern from "native/projection.h" nogil:
    ctypedef struct RowNumbers:
        int64_t *items
        size_t count
    ctypedef struct Bytes:
        uint8_t *items
        size_t count
    ctypedef struct Counts:
        int64_t *items
        size_t count
    ctypedef struct Projected:
        uint32_t kind
        int converts
        int64_t unconverted
        Bytes validity
        Bytes data
    uint32_t KINDS "KIND_ABSENT"
    void payloads_project(Payloads *payloads, Projected *columns, uint32_t count, int64_t rows, RowNumbers *wrong)
    void payloads_discover(Payloads *payloads, NameTable *names, Counts *counts, int64_t rows)
    void projected_free(Projected *column)
    const int32_t *projected_offsets(const Projected *column)
    size_t names_count(const NameTable *table)
    const uint8_t *name_at(const NameTable *table, size_t number, uint32_t *length)
    void bodies_split(const Column *source, int64_t rows, Bytes *data, int64_t *offsets, uint8_t *kinds)


cdef void _describe(Payloads *payloads, tuple description):
    memset(payloads, 0, sizeof(Payloads))
    payloads.source.validity = <const uint8_t *><uintptr_t>description[0]
    payloads.source.data = <const void *><uintptr_t>description[1]
    payloads.source.offsets = <const int64_t *><uintptr_t>description[2]
    payloads.source.first = description[3]


def project_payloads(tuple description, int64_t rows, list wanted):
    """Columns of encoded notifications, described as for `match_payloads`; `wanted` has (name, kind, converts).

    Returns for each (validity, data, offsets or None, how many values did not convert) in bytes, and the numbers of
    the rows that are no encoded notification.
    """
    cdef Payloads payloads
    cdef RowNumbers wrong
    cdef Py_ssize_t count = len(wanted), i
    cdef Projected *columns = <Projected *>calloc(count + 1, sizeof(Projected))
    cdef _Names names = _Names({name: number for number, (name, _, _) in enumerate(wanted)})
    cdef list found = []
    if columns == NULL:
        raise MemoryError
    memset(&wrong, 0, sizeof(wrong))
    _describe(&payloads, description)
    payloads.names = &names.table
    try:
        for i in range(count):
            columns[i].kind = wanted[i][1]
            columns[i].converts = wanted[i][2]
        with nogil:
            payloads_project(&payloads, columns, <uint32_t>count, rows, &wrong)
        for i in range(count):
            found.append(
                (
                    PyBytes_FromStringAndSize(<const char *>columns[i].validity.items, columns[i].validity.count),
                    PyBytes_FromStringAndSize(<const char *>columns[i].data.items, columns[i].data.count),
                    None
                    if projected_offsets(&columns[i]) == NULL
                    else PyBytes_FromStringAndSize(<const char *>projected_offsets(&columns[i]), (rows + 1) * 4),
                    columns[i].unconverted,
                )
            )
        return found, [wrong.items[i] for i in range(<Py_ssize_t>wrong.count)]
    finally:
        for i in range(count):
            projected_free(&columns[i])
        free(columns)
        free(wrong.items)
        payloads_free(&payloads)


def discover_payloads(tuple description, int64_t rows):
    """Which attributes encoded notifications have: names, and for each how many values of each kind."""
    cdef Payloads payloads
    cdef _Names names = _Names({})
    cdef Counts counts
    cdef uint32_t length
    cdef const uint8_t *text
    cdef size_t i, kind
    cdef dict found = {}
    memset(&counts, 0, sizeof(counts))
    _describe(&payloads, description)
    try:
        with nogil:
            payloads_discover(&payloads, &names.table, &counts, rows)
        for i in range(names_count(&names.table)):
            text = name_at(&names.table, i, &length)
            found[(<const char *>text)[:length].decode("utf-8")] = [
                counts.items[i * KINDS + kind] for kind in range(KINDS)
            ]
        return found
    finally:
        free(counts.items)
        payloads_free(&payloads)


def split_bodies(tuple description, int64_t rows):
    """The attributes of bodies, described as for `match_payloads`: bytes, offsets, and of what kind each body is.

    0 is one of attributes and an id, 1 has further properties, 2 is no body.
    """
    cdef Payloads payloads
    cdef Bytes data
    cdef bytes offsets = PyBytes_FromStringAndSize(NULL, (rows + 1) * 8)
    cdef bytes kinds = PyBytes_FromStringAndSize(NULL, rows)
    memset(&data, 0, sizeof(data))
    _describe(&payloads, description)
    try:
        bodies_split(
            &payloads.source,
            rows,
            &data,
            <int64_t *>PyBytes_AS_STRING(offsets),
            <uint8_t *>PyBytes_AS_STRING(kinds),
        )
        return PyBytes_FromStringAndSize(<const char *>data.items, data.count), offsets, kinds
    finally:
        free(data.items)
