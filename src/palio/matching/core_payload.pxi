# Encoded notifications, decoded and matched by native/payload.h.

cdef extern from "native/payload.h" nogil:
    ctypedef struct NameTable:
        pass
    ctypedef struct Payloads:
        const NameTable *names
        Column source
    void names_add(NameTable *table, const uint8_t *text, uint32_t length, uint32_t attribute)
    void names_free(NameTable *table)
    void payloads_free(Payloads *payloads)
    int64_t payloads_match(Payloads *payloads, Index *index, Workspace *work, int64_t rows)


cdef class _Names:
    """Attributes by the bytes of their names. Never changed: a batch that runs keeps the one that it began with."""

    cdef NameTable table
    cdef readonly Py_ssize_t count

    def __cinit__(self, dict names):
        cdef bytes raw
        memset(&self.table, 0, sizeof(NameTable))
        self.count = len(names)
        for name, number in names.items():
            raw = name.encode("utf-8", "surrogatepass")
            names_add(
                &self.table, <const uint8_t *>PyBytes_AS_STRING(raw), <uint32_t>PyBytes_GET_SIZE(raw), <uint32_t>number
            )

    def __dealloc__(self):
        names_free(&self.table)


def match_payloads(Core core not None, tuple description, int64_t rows):
    """Match rows of encoded notifications: (validity, data, offsets, first) of large binary, with addresses.

    Returns what `match_rows` does, or the number of the first row that is not an encoded notification.
    """
    cdef Workspace own
    cdef Workspace *work = &own
    cdef bint borrowed = not core.batch_work_is_lent
    cdef Payloads payloads
    cdef _Names names
    cdef int64_t wrong
    memset(&own, 0, sizeof(own))
    memset(&payloads, 0, sizeof(payloads))
    payloads.source.validity = <const uint8_t *><uintptr_t>description[0]
    payloads.source.data = <const void *><uintptr_t>description[1]
    payloads.source.offsets = <const int64_t *><uintptr_t>description[2]
    payloads.source.first = description[3]
    if borrowed:  # what the last batch needed serves again
        work = &core.batch_work
        core.batch_work_is_lent = True
    try:
        names = core.known_names
        if names is None or names.count != len(core.names):  # names are only ever added
            core.known_names = names = _Names(core.names)
        payloads.names = &names.table
        workspace_fit(work, &core.index)
        prepare_results(work, NULL if core.other_ids else core.id_numbers.items, rows)
        with nogil:
            wrong = payloads_match(&payloads, &core.index, work, rows)
        if wrong >= 0:
            return wrong
        core._observe(<uint64_t>rows)
        return (
            _memory(take_rows(work), work.rows.count * 8),
            _memory(take_ids(work), work.rows.count * (4 if work.id_numbers == NULL else 8)),
        )
    finally:
        if borrowed:
            core.batch_work_is_lent = False
        workspace_free(&own)
        payloads_free(&payloads)


def match_encoded(Core core not None, list encoded):
    """Match encoded notifications, each given as bytes.

    Returns a list of ids for each of them, or the number of the first one that is not an encoded notification.
    """
    cdef Py_ssize_t count = len(encoded), i
    cdef bytes joined = b"".join(encoded)
    cdef int64_t *offsets = <int64_t *>malloc((count + 1) * sizeof(int64_t))
    cdef Workspace *work = &core.work
    cdef Payloads payloads
    cdef _Names names
    cdef int64_t wrong
    cdef size_t at = 0, first
    cdef list found, all_found = []
    if offsets == NULL:
        raise MemoryError
    memset(&payloads, 0, sizeof(payloads))
    offsets[0] = 0
    for i in range(count):
        offsets[i + 1] = offsets[i] + PyBytes_GET_SIZE(encoded[i])
    payloads.source.data = <const void *>PyBytes_AS_STRING(joined)
    payloads.source.offsets = offsets
    try:
        names = core.known_names
        if names is None or names.count != len(core.names):  # names are only ever added
            core.known_names = names = _Names(core.names)
        payloads.names = &names.table
        workspace_fit(work, &core.index)
        work.slots.count = work.rows.count = 0
        wrong = payloads_match(&payloads, &core.index, work, count)
        if wrong >= 0:
            return wrong
        core._observe(<uint64_t>count)
        for i in range(count):
            first = at
            while at < work.rows.count and work.rows.items[at] == i:
                at += 1
            found = PyList_New(<Py_ssize_t>(at - first))
            if core.ids is None:
                make_ids(core.id_numbers.items, work.slots.items + first, at - first, list_items(found))
            else:
                pick_ids(list_items(core.ids), work.slots.items + first, at - first, list_items(found))
            all_found.append(found)
        return all_found
    finally:
        free(offsets)
        payloads_free(&payloads)
