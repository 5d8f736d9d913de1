# Tables: rows of columns, matched without the GIL, and the memory of the results.

cdef class Memory:
    """A result's memory, given back to the core with this object."""

    cdef Kept kept
    cdef readonly size_t size

    @property
    def address(self):
        return <uintptr_t>self.kept.memory

    def __dealloc__(self):
        if self.kept.memory != NULL:
            give_back(self.kept.memory, self.kept.kept_bytes)


cdef Memory _memory(Kept kept, size_t size):
    cdef Memory memory = Memory.__new__(Memory)
    memory.kept = kept
    memory.size = size
    return memory


cdef int _describe_column(tuple description, Column *column) except -1:
    """A column of scalars: (name, type, validity, data, offsets, first, multiplier, divisor)."""
    column.type = description[1]
    column.validity = <const uint8_t *><uintptr_t>description[2]
    column.data = <const void *><uintptr_t>description[3]
    column.offsets = <const int64_t *><uintptr_t>description[4]
    column.first, column.multiplier, column.divisor = description[5:8]
    return 0


cdef Reader _list_reader(tuple description, int64_t rows):
    """A column of lists: (name, its elements as a column, validity, offsets, first)."""
    cdef Reader reader = Reader.__new__(Reader)
    cdef Column elements
    cdef const uint8_t *validity = <const uint8_t *><uintptr_t>description[2]
    cdef const int64_t *offsets = <const int64_t *><uintptr_t>description[3]
    _describe_column(<tuple>description[1], &elements)
    list_values(&reader.values, &reader.elements, &elements, validity, offsets, description[4], rows)
    return reader


def match_rows(Core core not None, list columns, int64_t rows):
    """Match rows of columns, each (name, type, validity, data, offsets, first, multiplier, divisor) with
    addresses, or (name, such a column of elements, validity, offsets, first), or (name, list of values); between
    `begin_batch` and `end_batch`.

    Returns row numbers as int64, and ids as int64 if all are such, otherwise slots as int32.
    """
    cdef Workspace own
    cdef Workspace *work = &own
    cdef bint borrowed = not core.batch_work_is_lent
    cdef Reader reader
    cdef Columns described
    cdef Words32 present
    cdef Column *column
    cdef int64_t row = 0
    cdef size_t i
    keep = []
    memset(&own, 0, sizeof(own))
    if borrowed:  # what the last batch needed serves again
        work = &core.batch_work
        core.batch_work_is_lent = True
    memset(&described, 0, sizeof(described))
    memset(&present, 0, sizeof(present))
    try:
        workspace_fit(work, &core.index)
        prepare_results(work, NULL if core.other_ids else core.id_numbers.items, rows)
        columns_reserve(&described, len(columns))
        for description in columns:
            name = description[0]
            if name not in core.names:
                continue
            column = described.items + described.count
            described.count += 1
            if len(description) < 8:
                if len(description) == 2:
                    reader = Reader.__new__(Reader)
                    reader.begin(len(description[1]))
                    for value in description[1]:
                        reader.read(value)
                    reader.end()
                else:
                    reader = _list_reader(<tuple>description, rows)
                keep.append((reader, description[1]))
                column.type = COLUMN_VALUES
                column.data = reader.values.items
                column.first = 0
                column.validity = NULL
            else:
                _describe_column(<tuple>description, column)
            work.columns[<uint32_t>core.names[name]] = column
            words_push(&present, <uint32_t>core.names[name])
        with nogil:
            while row < rows:
                i = <size_t>(rows - row) if rows - row < <int64_t>tile_size() else tile_size()
                match_tile(&core.index, work, present.items, <uint32_t>present.count, row, <uint32_t>i)
                row += <int64_t>i
        core._observe(<uint64_t>rows)
        return (
            _memory(take_rows(work), work.rows.count * 8),
            _memory(take_ids(work), work.rows.count * (4 if work.id_numbers == NULL else 8)),
        )
    finally:
        for i in range(present.count):
            work.columns[present.items[i]] = NULL
        if borrowed:
            core.batch_work_is_lent = False
        workspace_free(&own)
        columns_free(&described)
        words_free(&present)
