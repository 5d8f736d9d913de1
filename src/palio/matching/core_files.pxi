# Saved and mapped: the core's arrays as named runs of bytes.

def sections(Core core not None):
    """The index as named runs of memory, each a list of views that are valid until the next change."""
    cdef size_t i
    cdef Block copy
    tables = bytearray()
    data = []
    for i in range(core.index.blocks.count):
        memset(&copy, 0, sizeof(copy))
        if block_is_there(core.index.blocks.items[i]):
            copy = core.index.blocks.items[i][0]
            data.append(_view(copy.data, copy.bytes))
        copy.data = NULL
        tables += (<char *>&copy)[: sizeof(copy)]
    return {
        "arena": [_view(core.index.arena.words.items, core.index.arena.words.count * 4)],
        "attributes": [_view(core.index.attributes.items, core.index.attributes.count * sizeof(Attribute))],
        "values": [_view(core.index.values.items, core.index.values.count * sizeof(Interned))],
        "groups": [_view(core.index.groups.items, core.index.groups.count * sizeof(Group))],
        "slots": [_view(core.index.slots.items, core.index.slots.count * 4)],
        "value_table": [_view(core.index.value_table.items, core.index.value_table.count * sizeof(Lookup))],
        "pairs": [_view(core.index.pairs.items, core.index.pairs.count * sizeof(Pair))],
        "grams": [_view(core.index.grams.items, core.index.grams.count * sizeof(Gram))],
        "block_tables": [bytes(tables)],
        "blocks": data,
        "id_numbers": [_view(core.id_numbers.items, 0 if core.other_ids else core.id_numbers.count * 8)],
    }


def state(Core core not None):
    """What else a mapped index needs to know."""
    return {
        "layout": _layout(),
        "names": core.names,
        "free_slots": core.free_slots,
        "other_ids": core.other_ids,
        "conjunctions": core.index.conjunctions,
        "live_values": core.index.live_values,
        "several": core.index.several,
    }


def mapped(mapping, sections, state):
    """A core that reads its sections, each (offset, bytes), where they lie in the mapping."""
    cdef Core core = Core.__new__(Core)
    cdef const unsigned char[::1] view = mapping
    cdef uint8_t *base = <uint8_t *><uintptr_t>&view[0]
    cdef const Block *tables
    cdef uint64_t i, at, end, count
    if state["layout"] != _layout():
        raise ValueError("This index was saved by a core with another layout.")
    for offset, size in sections.values():
        if offset < 0 or size < 0 or offset + size > len(mapping) or offset % 64:
            raise ValueError("This index is cut off or damaged.")
    core.index.mapped = 1
    core.mapping = mapping
    core.ids = None
    core.names = dict(state["names"])
    if any(not 0 <= number * sizeof(Attribute) < sections["attributes"][1] for number in core.names.values()):
        raise ValueError("This index is cut off or damaged.")
    core.free_slots = list(state["free_slots"])
    core.other_ids = state["other_ids"]
    core.index.conjunctions = state["conjunctions"]
    core.index.live_values = state["live_values"]
    core.index.several = state["several"]
    core.index.arena.words.items = <uint32_t *>(base + <size_t>sections["arena"][0])
    core.index.arena.words.count = sections["arena"][1] // 4
    core.index.attributes.items = <Attribute *>(base + <size_t>sections["attributes"][0])
    core.index.attributes.count = sections["attributes"][1] // sizeof(Attribute)
    core.index.values.items = <Interned *>(base + <size_t>sections["values"][0])
    core.index.values.count = sections["values"][1] // sizeof(Interned)
    core.index.groups.items = <Group *>(base + <size_t>sections["groups"][0])
    core.index.groups.count = sections["groups"][1] // sizeof(Group)
    core.index.slots.items = <uint32_t *>(base + <size_t>sections["slots"][0])
    core.index.slots.count = sections["slots"][1] // 4
    core.index.value_table.items = <Lookup *>(base + <size_t>sections["value_table"][0])
    core.index.value_table.count = sections["value_table"][1] // sizeof(Lookup)
    core.index.grams.items = <Gram *>(base + <size_t>sections["grams"][0])
    core.index.grams.count = sections["grams"][1] // sizeof(Gram)
    core.index.pairs.items = <Pair *>(base + <size_t>sections["pairs"][0])
    core.index.pairs.count = sections["pairs"][1] // sizeof(Pair)
    core.id_numbers.items = <int64_t *>(base + <size_t>sections["id_numbers"][0])
    core.id_numbers.count = sections["id_numbers"][1] // 8
    tables = <const Block *>(base + <size_t>sections["block_tables"][0])
    count = sections["block_tables"][1] // sizeof(Block)
    at = sections["blocks"][0]
    end = at + <uint64_t>sections["blocks"][1]
    for i in range(count):
        if tables[i].bytes > end - at:
            raise ValueError("This index is cut off or damaged.")
        block_mapped(&core.index, tables + <size_t>i, base + at)
        at += tables[i].bytes
    return core


cdef _view(const void *items, size_t size):
    if not size:
        return b""
    return memoryview(<const unsigned char[:size]><unsigned char *>items)


def _layout():
    """What two builds must have in common to read each other's files."""
    return [sizeof(Attribute), sizeof(Interned), sizeof(Group), sizeof(Pair), sizeof(Block), sizeof(Lookup), sizeof(Gram), 7]
