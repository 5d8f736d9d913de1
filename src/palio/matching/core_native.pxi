# What core.pyx uses of native/.

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1

cdef extern from "native/bridge.h":
    PyObject **list_items(object items)
    void pick_ids(PyObject **ids, const uint32_t *slots, size_t count, PyObject **into)
    int make_ids(const int64_t *numbers, const uint32_t *slots, size_t count, PyObject **into) except -1

cdef extern from "native/bridge.h" nogil:
    ctypedef struct Words32 "Words":
        uint32_t *items
        size_t count, capacity
    ctypedef struct Value:
        uint32_t kind
        uint32_t length
        int64_t integer "as.integer"
        int64_t elements_at "as.integer"
        double real "as.real"
        const uint8_t *text "as.text"
    ctypedef struct Column:
        uint32_t type
        const uint8_t *validity
        const void *data
        const int64_t *offsets
        int64_t first, multiplier, divisor
    ctypedef struct Ranges:
        size_t count
    ctypedef struct Values:
        Value *items
        size_t count
    ctypedef struct Columns:
        Column *items
        size_t count
    ctypedef struct IdNumbers:
        int64_t *items
        size_t count
    ctypedef struct Attribute:
        uint32_t uses, ranges, presence
    ctypedef struct Interned:
        uint32_t uses, seen
        uint8_t kind
    ctypedef struct Group:
        uint32_t key
    ctypedef struct Pair:
        uint32_t hash
    ctypedef struct Lookup:
        uint32_t hash
    ctypedef struct Gram:
        uint32_t mark
    ctypedef struct Block:
        uint8_t *data
        uint64_t bytes "bytes"
    # Vectors have no names in C; only their fields are used.
    ctypedef struct AttributeVector "Words":
        Attribute *items
        size_t count
    ctypedef struct InternedVector "Words":
        Interned *items
        size_t count
    ctypedef struct GroupVector "Words":
        Group *items
        size_t count
    ctypedef struct PairVector "Words":
        Pair *items
        size_t count
    ctypedef struct LookupVector "Words":
        Lookup *items
        size_t count
    ctypedef struct GramVector "Words":
        Gram *items
        size_t count
    ctypedef struct BlockVector "Words":
        Block **items
        size_t count
    ctypedef struct CountVector "Words":
        size_t count
    ctypedef struct Arena:
        Words32 words
    ctypedef struct Index:
        Arena arena
        AttributeVector attributes
        InternedVector values
        GroupVector groups
        PairVector pairs
        LookupVector value_table
        GramVector grams
        BlockVector blocks
        Words32 slots
        uint64_t conjunctions, observed
        uint32_t live_values, building, mapped, several
    ctypedef struct Workspace:
        Words32 slots, found
        IdNumbers rows
        const int64_t *id_numbers
        PyObject *const *id_objects
        const Column **columns
        uint64_t steps

    enum:
        KIND_BOOL
        KIND_INT
        KIND_FLOAT
        KIND_STRING
        KIND_TIME
        KIND_BYTES
        KIND_LIST
        KIND_ABSENT
        KIND_PRESENCE
        KIND_PREFIX
        KIND_BYTES_PREFIX
        KIND_FOLDED
        KIND_ELEMENT
        PART_MOST
        FORBIDDEN
        VIEW_INT
        VIEW_FLOAT
        VIEW_TIME
        VIEW_LEAST
        VIEW_MOST
        COLUMN_VALUES

    void words_push(Words32 *words, uint32_t word)
    void words_extend(Words32 *words, const uint32_t *source, size_t count)
    void words_free(Words32 *words)
    void ranges_push(Ranges *ranges, uint32_t attribute, double low, double high)
    void ranges_free(Ranges *ranges)
    void ranges_write(Words32 *record, const Ranges *ranges)
    void numbers_push(IdNumbers *numbers, int64_t number)
    void numbers_free(IdNumbers *numbers)
    void values_reserve(Values *values, size_t count)
    void values_free(Values *values)
    void columns_reserve(Columns *columns, size_t count)
    void columns_free(Columns *columns)
    void event_columns(Workspace *work, const Values *values, Columns *columns, const Words32 *present)
    void list_values(
        Values *values, Values *elements, const Column *column, const uint8_t *validity, const int64_t *offsets, int64_t first,
        int64_t rows
    )
    void resolve_elements(Values *values, const Values *elements)

    uint32_t attribute_new(Index *index)
    uint32_t attribute_view(Index *index, uint32_t attribute, uint32_t view)
    uint32_t slot_new(Index *index)
    uint32_t value_intern(Index *index, uint32_t attribute, Value value)
    uint32_t value_uses(const Index *index, uint32_t attribute, Value value)
    uint32_t program_store(Index *index, uint32_t attribute, const uint8_t *code, uint32_t length)
    void count_uses(Index *index, const uint32_t *record)
    void index_add(Index *index, uint32_t *record)
    void index_remove(Index *index, uint32_t slot)
    void index_add_staged(Index *index, Words32 *staged)
    void index_finish(Index *index)
    void index_renumber(Index *index, Words32 *numbers)
    void index_forget(Index *index)
    void index_free(Index *index)
    int block_is_there(const Block *block)
    Block *block_mapped(Index *index, const Block *table, uint8_t *data)
    uint64_t index_bytes(const Index *index)
    uint64_t groups_in_use(const Index *index)
    uint64_t blocks_in_use(const Index *index)
    uint64_t conjunctions_asked(const Index *index)

    int choose_kernels(int width)
    size_t tile_size()
    void workspace_fit(Workspace *work, const Index *index)
    void workspace_free(Workspace *work)
    void match_alone(Index *index, Workspace *work, const uint32_t *present, uint32_t count)
    void match_tile(Index *index, Workspace *work, const uint32_t *present, uint32_t count, int64_t row, uint32_t events)
    ctypedef struct Kept:
        void *memory
        size_t kept_bytes "bytes"
    void prepare_results(Workspace *work, const int64_t *id_numbers, int64_t rows)
    Kept take_rows(Workspace *work)
    Kept take_ids(Workspace *work)
    void give_back(void *memory, size_t size)
