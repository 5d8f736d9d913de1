# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The compiled match index: theory of operation.

The problem: a million conjunctions of sides, an event, and the conjunctions all of whose sides it satisfies.

**Sides** are of these sorts, told apart when a filter is added (`_side`, and `core_leads.pxi` for the last two):

- an *equality* with a string, a bool or a number is a number in a table of interned values, so that an event's
  value is hashed once and compared by one bit from then on. A *prefix* or a *suffix* of up to 64 bytes is an
  equality too: an event's text is looked up once for each length that filters of its attribute ask for. So is an
  *element* of a list, each of which is looked up, the *presence* of an attribute, and a *factor*, which a text has
  somewhere (`contains`): an event's text finds all its factors in one pass (`native/factors.h`, `native/scanning.h`).
  What is equal ignoring case is looked up with the event's letters made small (`native/folding.h`);
- a *range* of numbers is two doubles. This is exact, for ints too: it is used only where the ends lie below 2**53
  and the int part of the set is what the float part implies. Where a type is demanded, or for times (in
  microseconds), the range is one of a *view* of the attribute, which is an attribute of its own (`native/values.h`);
  `has` with a range is one of the list's greatest number, or of its least, or of both;
- an *exclusion* (`!=`, `not … =`, `not … contains`) is an interned value that an event must not have: one bit, too;
- everything else is a *program*, flat bytes that answer for one value (`native/programs.h`), and as far as it has any,
  *leads*: equalities that follow from it, by which it is found (`leads.py`). Of a glob or a pattern this is its rarest
  literal, of a stretch of texts or a network how they all begin, of a text or a condition beyond 64 bytes a part; where one of several holds
  (`or` within an attribute), the conjunction is filed once for each. What is found this way is asked, nothing else is.

What is left to be asked by every event that has its attribute, some 25 ns each, are filters that have none of these:
globs and patterns without a literal of three bytes (`*a*b*`), `>` and `<` between texts, typed `exists`, ranges of a type or of times
in lists. `statistics()` counts them (`asked`).

**Groups** (`native/groups.h`, `native/visiting.h`). A conjunction is filed under a key that every event that it matches
must have: its rarest equality, its two rarest where one is too common, or failing that the presence of its rarest
attribute; ranges of attributes that most events have anyway are pooled instead, up to one block of them, as many small
groups cost more than one. An event with v interned values looks at v keys and those of its v * (v - 1) / 2 pairs that
can be in use; the rest of the index is never touched. Factors and elements are keys of their own, never of a pair. An `in` with few values is filed once for each of them. A pair costs one cache line,
whether somebody has it or not; a group that has it one more, and its records, which lie side by side, usually one.
Several events ask together, so that many of these lines are on their way at once. What is rarest is known from the
events observed, before there are enough from the filters; or from hints (`hints.py`), which set the counters of observed
events when a value is first named, and the order in which the ranges and programs of a conjunction are asked.

**Blocks** (`native/blocks.h`, `native/arrangement.h`, `native/sweep.h`). Where a group is large, its conjunctions are put
into blocks of up to 16,384 with a bitmap "fails" over them. For one attribute this bitmap is a function of the event's
value that changes by one bit at each end of a range. So the sorted ends are the whole function, and a batch of
events, sorted by value, walks along them: each bit is flipped once for the batch, and each event costs one
or of at most 2 KB for each attribute and block, exact at the ends, with no candidate ever compared. Ids that are numbers
take the place of slots block by block, while those of a block are in the caches. A lone event
starts from the nearest of the snapshots of the bitmap (`native/lone.h`). Next to nothing of what it needs is in the
caches, so all its blocks form one line: all are searched at once, and while one attribute is or'ed, the snapshots
of the next four are on their way, and so are the ids of what the last block found.

Within a block, conjunctions with ranges on the same attributes lie together, and an attribute's bitmaps leave out the
lanes of 256 in which nobody has a range on it. Of a million filters with five of twenty attributes each, given at
once, eight lanes remain of eighteen. Filters given one by one are arranged within their block only, where less is to be
had. Where filters are given at once, slots are numbered as blocks have them: then a block need not be asked for its
slots, and whatever lies by slot is read in ascending order.

**Invariants.** Every conjunction is in exactly one group, either as a loose record or at a position of one block,
and its place says where. Conjunctions of a block are in the order of `native/arrangement.h`. A group without live members
does not exist, nor does an interned value without uses. The loose records of a group are one run of words. A record's
equalities begin with those that the group's key vouches for. Blocks in a group number
logarithmically many beyond the full ones.

**Costs**, with n conjunctions in the groups that an event leads to, a attributes and m matches: an event of a
batch costs at most a * n / 8 bytes of or (at 32 bytes a cycle), 2 * n * (ranges) / (events of the batch) flips, and
m words of output; its texts cost a cache line for each byte and class of grams, and a comparison for each factor filed under
a gram that they have. A lone event costs, for each attribute and block, three cache lines to find its place (side by side
with all the others), up to 2 KB of snapshot from memory and a quarter of the snapshots' spacing in flips; and for each
id a cache line or two, since ids lie where the caller made them. What it waits for is memory: at a million ranges,
some 1,000 pairs of block and attribute and 1 MB of snapshots.
Adding is a few hash probes and a copy; each conjunction is merged into a larger block at
most seven times. Removing sets a bit; a block is rewritten when a quarter of it is dead. A range takes 52 bytes
in a block (20 for two ends with their positions, 32 for snapshots), a conjunction about 24 more.

**Files** (`native/` refers by number, never by pointer): `save` writes the arrays as they are, and
`open_mapped` points at them in the mapped file. Nothing is copied. The core trusts what it reads there, as checking
would cost what mapping saves; a checksum over the file stands guard (`files.py`).

**Encoded notifications** (`native/payload.h`) are decoded a tile of rows at a time into cells that are read as columns.

**Running out of memory** ends the process. A change that stops halfway would leave a conjunction counted but not
filed, or in two places, and undoing each step would be more code than the steps; systems that overcommit end the
process anyway.

**Threads.** Matching changes nothing but counters. A batch runs without the GIL, several at once if need be; a
change waits until no batch is running, and none begins meanwhile: `index` holds a lock while it changes anything,
while it matches a lone event (which uses the one workspace of the core), and while a batch begins.
"""

import math
import threading
from datetime import datetime

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.math cimport INFINITY, ceil, nextafter
from libc.stdint cimport INT64_MAX, INT64_MIN, UINT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from palio.matching.leads import LEAST_FACTOR
from palio.matching.leads import literals as _literals
from palio.matching.places import by_slot
from palio.matching.programs import compiled, microseconds
from palio.model import constraint as _constraint
from palio.model import flips as _flips
from palio.model.decision import DecisionNode as _DecisionNode
from palio.model.errors import FilterTooLarge
from palio.model.flips import EVERYTHING as _EVERYTHING
from palio.model.texts import EndsWith as _EndsWith
from palio.model.values import TIME_MIN, Kind

include "core_native.pxi"
include "core_values.pxi"
include "core_sides.pxi"
include "core_leads.pxi"

def use_kernels(int width):
    """Run the kernels for vectors of at most this width: 0 the architecture's baseline, 1 AVX2, 2 AVX-512. Returns
    which they are, as the machine may have no such; by default they are the widest that it has."""
    return choose_kernels(width)


use_kernels(2)

# Words of records that wait to be filed together: 128 MB, a million filters of five ranges. More at once is more
# that can lie side by side.
cdef size_t STAGED_MOST = 32_000_000

# A value that fewer conjunctions demand is rare enough to be the only one that a conjunction is filed under.
cdef uint32_t RARE_USES = 32

# As so many observed events do hints count: after as many of its own, the index goes by these.
cdef uint64_t HINTED_EVENTS = 1 << 17
_KINDS_OF_VIEWS = {
    VIEW_INT: Kind.INT, VIEW_FLOAT: Kind.FLOAT, VIEW_TIME: Kind.TIME, VIEW_LEAST: Kind.LIST, VIEW_MOST: Kind.LIST
}


cdef class Core:
    """Conjunctions by slot. Slots are small numbers, given out here, each with the caller's id of a filter."""

    cdef Index index
    cdef Workspace work
    cdef Workspace batch_work
    cdef bint batch_work_is_lent
    cdef readonly dict names
    cdef public list ids  # None in a mapped core whose ids are numbers, or are still to be given
    cdef list free_slots
    cdef IdNumbers id_numbers
    cdef readonly size_t other_ids  # those that are no ints of 64 bits
    cdef int readers
    cdef object quiet
    cdef object mapping
    cdef Words32 record
    cdef Words32 equalities
    cdef size_t keys  # how many of the equalities an event has to have, presence aside
    cdef list programs
    cdef Ranges ranges
    cdef Reader reader
    cdef Columns columns
    cdef Words32 present
    cdef object known_names  # what core_payload.pxi looks names up in
    cdef object hints  # how frequent values are, as somebody says; or None

    def __cinit__(self):
        memset(&self.index, 0, sizeof(Index))
        memset(&self.work, 0, sizeof(Workspace))
        memset(&self.batch_work, 0, sizeof(Workspace))
        self.names = {}
        self.ids = []
        self.free_slots = []
        self.quiet = threading.Condition()
        self.programs = []
        self.reader = Reader.__new__(Reader)

    def __dealloc__(self):
        index_free(&self.index)
        workspace_free(&self.work)
        workspace_free(&self.batch_work)
        words_free(&self.record)
        words_free(&self.equalities)
        words_free(&self.present)
        ranges_free(&self.ranges)
        columns_free(&self.columns)
        if not self.index.mapped:
            numbers_free(&self.id_numbers)

    # Hints

    def take_hints(self, hints):
        """Believe what `Hints` say of values that no filter has named yet, as if it had been observed."""
        self.hints = hints
        self.index.observed = max(self.index.observed, HINTED_EVENTS)

    cdef int _expect(self, uint32_t value, double share) except -1:
        """Take a value, which no filter has named yet, to have been in this share of what was observed."""
        if not share > 0:  # nor if it is no number
            share = 0
        self.index.values.items[value].seen = <uint32_t>(min(share, 1.0) * <double>min(self.index.observed, UINT32_MAX))
        return 0

    # Changing

    cdef int _wait_for_readers(self) except -1:
        if self.index.mapped:
            raise TypeError("A mapped index cannot be changed.")
        if self.readers:
            with self.quiet:
                while self.readers:
                    self.quiet.wait()
        return 0

    def begin_batch(self):
        """Changes wait from now on until `end_batch`. To be called while no change is under way."""
        self.readers += 1

    def end_batch(self):
        self.readers -= 1
        if not self.readers:
            self._observe(0)
            with self.quiet:
                self.quiet.notify_all()

    cdef uint32_t _attribute(self, str name) except? 0xFFFFFFFF:
        cdef PyObject *known = PyDict_GetItem(self.names, name)
        cdef uint32_t number
        if known != NULL:
            return <uint32_t>(<object>known)
        number = attribute_new(&self.index)
        self.names[name] = number
        if self.hints is not None:
            self._expect(self.index.attributes.items[number].presence, self.hints.presence(name))
        return number

    cdef uint32_t _view(self, str name, uint32_t attribute, int view) except? 0xFFFFFFFF:
        cdef size_t known = self.index.attributes.count
        cdef uint32_t number = attribute_view(&self.index, attribute, <uint32_t>view)
        if self.hints is not None and number >= known:
            self._expect(self.index.attributes.items[number].presence, self.hints.presence(name, _KINDS_OF_VIEWS[view]))
        return number

    cdef uint32_t _interned(self, uint32_t attribute, Value value, str name, side, point) except? 0xFFFFFFFF:
        """The number of a value that a side demands; of a side with several, the point that is meant."""
        cdef uint32_t number = value_intern(&self.index, attribute, value)
        if self.hints is not None and not self.index.values.items[number].uses:
            self._expect(number, self.hints.share(name, side) if point is None else self.hints.value(name, point))
        return number

    cdef uint32_t _new_slot(self, id) except? 0xFFFFFFFF:
        cdef uint32_t slot
        cdef int overflow = 1
        cdef long long number = 0
        if self.free_slots:
            slot = <uint32_t>self.free_slots.pop()
            self.ids[slot] = id
        else:
            slot = slot_new(&self.index)
            self.ids.append(id)
            numbers_push(&self.id_numbers, 0)
        if type(id) is int:
            number = PyLong_AsLongLongAndOverflow(id, &overflow)
        if overflow:
            self.other_ids += 1
        else:
            self.id_numbers.items[slot] = number
        return slot

    def add(self, filter, id):
        """Add a filter's conjunctions; returns their slot."""
        cdef uint32_t slot
        self._wait_for_readers()
        slot = self._new_slot(id)
        for box in filter.conjunctions:
            self._compile(slot, box.sides, NULL)
        return slot

    def add_many(self, pairs):
        """Add many (filter, id) to a new core; returns their slots.

        A whole portion is read before its first is filed, so that it is known what is rare and what goes together.
        """
        cdef Words32 staged, numbers
        cdef uint32_t slot
        self._wait_for_readers()
        assert not self.ids
        memset(&staged, 0, sizeof(staged))
        memset(&numbers, 0, sizeof(numbers))
        self.index.building = 1
        try:
            for filter, id in pairs:
                slot = self._new_slot(id)
                for box in filter.conjunctions:
                    self._compile(slot, box.sides, &staged)
                if staged.count > STAGED_MOST:
                    index_add_staged(&self.index, &staged)
        finally:
            index_add_staged(&self.index, &staged)
            words_free(&staged)
            index_finish(&self.index)
        try:
            index_renumber(&self.index, &numbers)
            slots = [numbers.items[slot] for slot in range(numbers.count)]
        finally:
            words_free(&numbers)
        self.ids = by_slot(self.ids, slots)
        self.id_numbers.count = 0
        for number in by_slot([self.id_numbers.items[slot] for slot in range(len(slots))], slots):
            numbers_push(&self.id_numbers, number)
        return slots

    def remove(self, uint32_t slot, filter):
        """Remove a slot, which was given for this filter."""
        cdef int overflow = 1
        self._wait_for_readers()
        for box in filter.conjunctions:
            for name, side in box.sides.items():
                if not side.absent:
                    self.index.attributes.items[<uint32_t>self.names[name]].uses -= 1
        index_remove(&self.index, slot)
        id = self.ids[slot]
        if type(id) is int:
            PyLong_AsLongLongAndOverflow(id, &overflow)
        if overflow:
            self.other_ids -= 1
        self.ids[slot] = None
        self.free_slots.append(slot)

    cdef int _compile(self, uint32_t slot, dict sides, Words32 *staged) except -1:
        """One conjunction, as one record or, where it is found by one of several values, as several."""
        cdef uint32_t attribute
        cdef Sort sort
        cdef Value value
        cdef double low = 0, high = 0
        cdef int view = -1
        cdef list several = None
        cdef tuple stretched = None
        cdef size_t others
        self.equalities.count = self.ranges.count = self.keys = 0
        self.programs.clear()
        for name, side in sides.items() if self.hints is None else self.hints.ordered(sides):
            attribute = self._attribute(name)
            absent = side.absent
            if not absent:
                self.index.attributes.items[attribute].uses += 1
            sort = PROGRAM if absent else _side(<tuple>side.parts, &value, &low, &high, &view)
            if sort == EQUALITY:
                words_push(&self.equalities, self._interned(attribute, value, name, side, None))
                self.keys += 1
            elif sort == RANGE:
                if view >= 0:
                    attribute = self._view(name, attribute, view)
                ranges_push(&self.ranges, attribute, low, high)
                self.index.attributes.items[attribute].ranges = 1
            else:
                if several is None:
                    several = []
                if sort == SEVERAL:
                    several.append((_points(side.parts), attribute, side, name, True))
                elif stretched is None and not absent and (found := _stretches(<tuple>side.parts)) is not None:
                    stretched = (attribute, side, found)
                else:
                    self._follow(name, attribute, side, several)
        if stretched is not None:
            if not several and not self.keys and not self.ranges.count and not self.programs:
                return self._file_stretches(slot, stretched, staged)
            self.programs.append((stretched[0], compiled(stretched[1])))
        if not several:
            return self._file(slot, staged)
        several.sort(key=_by_length)
        chosen = self._rarer(several) if self.keys else several[0]
        for entry in several:
            if entry is not chosen and entry[4]:
                self.programs.append((entry[1], compiled(entry[2])))
        if chosen is None:
            return self._file(slot, staged)
        others = self.equalities.count
        for point in chosen[0]:
            self.equalities.count = others
            if type(point) is tuple:
                self._lead(chosen[1], <tuple>point, chosen[3], chosen[2])
            else:
                _value(point, &value)
                words_push(&self.equalities, self._interned(chosen[1], value, chosen[3], None, point))
            self._file(slot, staged)
        return 0

    cdef int _file_stretches(self, uint32_t slot, tuple stretched, Words32 *staged) except -1:
        """A conjunction of a few stretches of numbers and nothing else to find it by, once for each."""
        cdef double low, high
        self.index.attributes.items[<uint32_t>stretched[0]].ranges = 1
        for low, high in stretched[2]:
            self.ranges.count = 0
            ranges_push(&self.ranges, <uint32_t>stretched[0], low, high)
            self._file(slot, staged)
        return 0

    cdef tuple _rarer(self, list several):
        """Of entries of which one value has to hold the one whose values together are rarer than all that is demanded, or None.

        Where that is rare itself, nothing is worth being filed several times.
        """
        cdef Value value
        cdef uint32_t uses, least = UINT32_MAX, number
        cdef uint64_t together
        cdef size_t i
        cdef tuple best = None
        for i in range(self.equalities.count):
            number = self.equalities.items[i]
            if not number & FORBIDDEN and self.index.values.items[number].kind != KIND_PRESENCE:
                least = min(least, self.index.values.items[number].uses)
        if least < RARE_USES:
            return None
        for entry in several:
            together = 0
            for point in entry[0]:
                if type(point) is tuple:
                    _lead_value(<tuple>point, &value)
                else:
                    _value(point, &value)
                together += value_uses(&self.index, entry[1], value)
            if together < least:
                best, least = entry, <uint32_t>together
        return best

    cdef int _follow(self, str name, uint32_t attribute, side, list several) except -1:
        """A side that is neither an equality nor a range: what it is found by, and a program if that does not say all.

        Leads of which one has to hold become an entry of `several`.
        """
        cdef tuple parts = <tuple>side.parts
        cdef list leads = _forbidden(parts)
        cdef int kind, only = -1
        cdef bint exact = False
        if side.absent and not any(parts):
            words_push(&self.equalities, self.index.attributes.items[attribute].presence | FORBIDDEN)
            return 0
        if leads is not None:
            if not side.absent:
                words_push(&self.equalities, self.index.attributes.items[attribute].presence)
            for lead in leads:
                words_push(&self.equalities, self._lead_number(attribute, <tuple>lead, name, None) | FORBIDDEN)
            return 0
        if not side.absent:
            for kind in range(7):
                if parts[kind]:
                    only = kind if only == -1 else -2
            if only == KIND_STRING or only == KIND_BYTES or only == KIND_LIST:
                leads = self._follow_part(name, attribute, side, only, &exact)
            else:
                leads = _value_alternatives(parts)
            if exact:
                return 0
            if leads is not None:
                several.append((leads, attribute, side, name, False))
        self.programs.append((attribute, compiled(side)))
        return 0

    cdef list _follow_part(self, str name, uint32_t attribute, side, int kind, bint *exact):
        """The leads of a side of one kind; whether they say all; and those of which one has to hold, if there are such."""
        cdef bint one = False
        cdef list leads, alternatives = None
        asked, rest = _conditions(kind, side.parts[kind], exact)
        for atom in asked[:LEADS_MOST]:
            if kind != KIND_LIST:
                known = _literals(atom)
                leads = _text_leads(kind, known, &one)
                exact[0] = exact[0] and one
                if not leads:
                    alternatives = _one_of_leads(kind, known) or alternatives
                else:
                    self._lead(attribute, leads[0] if one else self._rarest(attribute, leads), name, side)
                if one and len(leads) > 1:
                    words_push(&self.equalities, self._lead_number(attribute, <tuple>leads[2], name, None) | FORBIDDEN)
                continue
            leads = _exact_element(atom)
            if leads is not None:
                self._lead(attribute, <tuple>leads[0], name, side)
                continue
            span = _element_range(atom.elements)
            if span is not None:
                self._element_span(name, attribute, span[0], span[1])
                exact[0] = exact[0] and span[2]
                continue
            exact[0] = False
            leads = _element_alternatives(atom)
            if leads is not None and len(leads) == 1:
                self._lead(attribute, <tuple>leads[0], name, side)
            elif leads is not None:
                alternatives = leads
        if len(asked) > LEADS_MOST:
            exact[0] = False
        if type(rest) is not tuple:
            leads = _alternatives(kind, rest)
            return alternatives if leads is None or not 0 < len(leads) <= FILED_VALUES else leads
        if rest == _EVERYTHING[kind]:
            exact[0] = exact[0] and len(asked) > 0  # nothing else says of which kind the value is
            return alternatives
        leads = None if kind == KIND_LIST else _stretch_leads(kind, <tuple>rest)
        if leads is None or len(leads) > 1:
            exact[0] = False
            return alternatives if leads is None else leads
        self._lead(attribute, <tuple>leads[0], name, side)
        exact[0] = exact[0] and (
            leads[0][0] == kind or (rest == _constraint.prefix(kind, rest[0]) and len(_raw(kind, rest[0])) <= PART_MOST)
        )
        return alternatives

    cdef int _element_span(self, str name, uint32_t attribute, double low, double high) except -1:
        """An element in a range of numbers: the greatest is not below it, the least not above it."""
        cdef uint32_t number
        if low != -INFINITY:
            number = self._view(name, attribute, VIEW_MOST)
            ranges_push(&self.ranges, number, low, INFINITY)
            self.index.attributes.items[number].ranges = 1
        if high != INFINITY or low == -INFINITY:
            number = self._view(name, attribute, VIEW_LEAST)
            ranges_push(&self.ranges, number, -INFINITY, high)
            self.index.attributes.items[number].ranges = 1
        return 0

    cdef int _lead(self, uint32_t attribute, tuple lead, str name, side) except -1:
        words_push(&self.equalities, self._lead_number(attribute, lead, name, side))
        self.keys += 1
        return 0

    cdef uint32_t _lead_number(self, uint32_t attribute, tuple lead, str name, side) except? 0xFFFFFFFF:
        """The number of a lead; of a side that is not given, it is not known how frequent it is."""
        cdef Value value
        _lead_value(lead, &value)
        if side is None:
            return value_intern(&self.index, attribute, value)
        return self._interned(attribute, value, name, side, None)

    cdef tuple _rarest(self, uint32_t attribute, list leads):
        """Of leads that all have to hold the one that the fewest filters have, of several such the longest."""
        cdef Value value
        cdef uint32_t uses, least = 0
        cdef tuple best = None
        for lead in leads:
            _lead_value(<tuple>lead, &value)
            uses = value_uses(&self.index, attribute, value)
            if best is None or uses < least or (uses == least and len(lead[1]) > len(best[1])):
                best, least = lead, uses
        return best

    cdef int _file(self, uint32_t slot, Words32 *staged) except -1:
        """The record of what has been compiled: to the index, or to those that wait."""
        cdef size_t equalities = self.equalities.count, ranges = self.ranges.count, programs = len(self.programs)
        cdef size_t most = max(equalities, ranges, programs)
        cdef uint32_t offset
        cdef bytes code
        if most > 1023:
            raise FilterTooLarge(limit=1023, got=most, what="sides of one sort in a conjunction")
        self.record.count = 0
        words_push(&self.record, slot)
        words_push(&self.record, <uint32_t>(equalities | ranges << 10 | programs << 20))
        words_extend(&self.record, self.equalities.items, equalities)
        ranges_write(&self.record, &self.ranges)
        for attribute, code in self.programs:
            offset = program_store(
                &self.index, <uint32_t>attribute, <const uint8_t *>PyBytes_AS_STRING(code), <uint32_t>PyBytes_GET_SIZE(code)
            )
            words_push(&self.record, offset)
        count_uses(&self.index, self.record.items)
        if staged == NULL:
            index_add(&self.index, self.record.items)
        else:
            words_extend(staged, self.record.items, self.record.count)
        return 0

    # Matching

    cdef int _event(self, attributes) except -1:
        """One notification's attributes as columns of one row."""
        cdef PyObject *known
        cdef Reader reader = self.reader
        self.present.count = 0
        reader.begin(len(attributes))
        columns_reserve(&self.columns, len(attributes))
        for name, value in attributes.items():
            known = PyDict_GetItem(self.names, name)
            if known != NULL:
                reader.read(value)
                words_push(&self.present, <uint32_t>(<object>known))
        reader.end()
        event_columns(&self.work, &reader.values, &self.columns, &self.present)
        return 0

    def match(self, attributes):
        """The ids of the slots that the attributes of one notification satisfy."""
        cdef size_t i, count
        cdef list found
        cdef const uint32_t *slots
        workspace_fit(&self.work, &self.index)
        self._event(attributes)
        count = self.present.count
        self.work.id_objects = NULL if self.ids is None else list_items(self.ids)
        match_alone(&self.index, &self.work, self.present.items, <uint32_t>count)
        self.work.id_objects = NULL
        for i in range(count):
            self.work.columns[self.present.items[i]] = NULL
        self._observe(1)
        count = self.work.found.count
        found = PyList_New(<Py_ssize_t>count)
        slots = self.work.found.items
        if self.ids is None:
            make_ids(self.id_numbers.items, slots, count, list_items(found))
        else:
            pick_ids(list_items(self.ids), slots, count, list_items(found))
        return found

    cdef int _observe(self, uint64_t events) except -1:
        """Count events; from time to time halve all counts, so that what is observed is the recent past."""
        if not self.index.mapped:
            self.index.observed += events
            if self.index.observed > 1 << 20 and not self.readers:
                index_forget(&self.index)
        return 0

    # Looking at it

    @property
    def is_mapped(self):
        return bool(self.index.mapped)

    def counts(self):
        """What there is of everything: conjunctions that are asked one by one, bytes, conjunctions, groups, blocks, interned values, attributes."""
        return {
            "asked": conjunctions_asked(&self.index),
            "bytes": index_bytes(&self.index),
            "conjunctions": self.index.conjunctions,
            "groups": groups_in_use(&self.index),
            "blocks": blocks_in_use(&self.index),
            "values": self.index.live_values,
            "attributes": len(self.names),
            "observed": self.index.observed,
        }

    @property
    def steps(self):
        """How often lone matches have looked up or compared anything: what a test counts instead of seconds."""
        return self.work.steps

    @property
    def slots(self):
        return self.index.slots.count


def pick(list ids, const uint32_t[::1] slots):
    """The ids at these slots, as a match hands them out: so that this can be measured alone."""
    cdef list found = PyList_New(slots.shape[0])
    if slots.shape[0]:
        pick_ids(list_items(ids), &slots[0], <size_t>slots.shape[0], list_items(found))
    return found


include "core_batches.pxi"
include "core_payload.pxi"
include "core_projection.pxi"
include "core_files.pxi"
