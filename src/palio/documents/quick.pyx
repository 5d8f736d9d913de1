# cython: language_level=3, boundscheck=False, wraparound=False
"""The compiled half of `finding`: values of many paths, in one walk over libxml2's own tree.

It walks as `walk` does, by the places that this makes, and turns texts into values as `conversion` does; but it
knows only what is plain: paths without predicates, one node where one is wanted, texts that are clearly a value
of their kind. Of every other document the answer is None, and the long way says what there is, or what is wrong.

1. Nothing is changed in the tree, and nothing of it is held after the walk.
2. What grows with documents of strangers is bounded: places by `MOST_PLACES`, texts by what the long way takes.
3. Python's lock is held all the time, but for calls into Python, which make a place when it is first needed and
   read a time: whatever was read from `self` before such a call is read again after it. Places are only
   forgotten while nobody walks.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport uint32_t
from libc.string cimport memcmp, memcpy, memset, strcmp, strlen

from lxml.includes.etreepublic cimport _Element, import_lxml__etree
from lxml.includes.tree cimport (
    XML_CDATA_SECTION_NODE,
    XML_COMMENT_NODE,
    XML_ELEMENT_NODE,
    XML_PI_NODE,
    XML_TEXT_NODE,
    xmlAttr,
    xmlNode,
    xmlNs,
)

import_lxml__etree()

DEF MOST_PLACES = 4096  # as many as `walk` keeps
DEF MOST_DEPTH = 1024  # libxml2 reads no document that is as deep
DEF NOWHERE = -1
DEF UNKNOWN = -2
DEF MOST_DIGITS = 18  # of integers that surely fit into 64 bits
DEF EXACT_DIGITS = 15  # of decimals that a float holds exactly, so that one division rounds as it should

cdef enum Kind:
    STRING, INT, FLOAT, BOOL, TIME

KINDS = {"string": STRING, "int": INT, "float": FLOAT, "bool": BOOL, "time": TIME}

cdef double[16] POWERS
POWERS[:] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15]

cdef struct Slot:
    int kind
    bint many

cdef struct NameEntry:
    const char *local
    const char *namespace
    int number

cdef struct AttributeTest:
    const char *local  # NULL: any
    const char *namespace  # NULL: any
    int slot

cdef struct Place:
    int *found
    int found_count
    int *texts
    int texts_count
    AttributeTest *attributes
    int attributes_count
    bint enters  # whether children can lead anywhere
    int *following  # by the number of a name

cdef struct Going:
    char *room  # where texts are put together
    Py_ssize_t size
    int depth
    Py_ssize_t characters  # bytes of all values, at least as many as their characters


cdef const char *NOTHING = b""


cdef inline const char *_namespace(xmlNs *ns) noexcept:
    return NOTHING if ns == NULL or ns.href == NULL else <const char *>ns.href


cdef inline uint32_t _hash(const char *name) noexcept:
    cdef uint32_t value = 2166136261u
    while name[0]:
        value = (value ^ <unsigned char>name[0]) * 16777619u
        name += 1
    return value


cdef inline bint _is_text(const xmlNode *node) noexcept:
    return node.type == XML_TEXT_NODE or node.type == XML_CDATA_SECTION_NODE


cdef inline bint _is_space(char one) noexcept:
    return one == c" " or one == c"\t" or one == c"\r" or one == c"\n"


cdef void _free(Place *place) noexcept:
    PyMem_Free(place.found)
    PyMem_Free(place.texts)
    PyMem_Free(place.attributes)
    PyMem_Free(place.following)
    PyMem_Free(place)


cdef int *_numbers(several) except? NULL:
    cdef int *made = NULL
    cdef int place
    if several:
        made = <int *>PyMem_Malloc(len(several) * sizeof(int))
        if made == NULL:
            raise MemoryError
        for place, one in enumerate(several):
            made[place] = one
    return made


cdef class QuickWalk:
    """The paths of one `DocumentWalk`, which have no predicates. One may be used by several threads at a time."""

    cdef object _walk
    cdef object _moment
    cdef list _kept  # what pointers point into
    cdef list _told  # names as `next_place` is told them, by number
    cdef list _objects  # places, by number, and the names that their tests point into
    cdef dict _placed  # and the other way round
    cdef Place **_places
    cdef int _count
    cdef Slot *_slots
    cdef int _slot_count
    cdef NameEntry *_names
    cdef int _mask
    cdef const char **_families  # namespaces of which any name is wanted
    cdef int _family_count
    cdef int _under_way
    cdef Py_ssize_t _most_elements, _most_string, _most_values

    def __cinit__(self, *_, **__):
        self._places = <Place **>PyMem_Malloc(MOST_PLACES * sizeof(Place *))
        if self._places == NULL:
            raise MemoryError

    def __init__(self, walk, slots, moment, *, most_elements, most_string, most_values):
        """`slots` says of each path of the walk, by its number, the kind of its values and whether there may be
        several. `moment` reads a time, or raises ValueError.
        """
        cdef int place, at
        cdef bytes local, namespace
        self._objects, self._placed = [], {}
        self._walk, self._moment = walk, moment
        self._most_elements, self._most_string, self._most_values = most_elements, most_string, most_values
        self._kept = []
        self._slot_count = len(slots)
        self._slots = <Slot *>PyMem_Malloc(max(1, self._slot_count) * sizeof(Slot))
        if self._slots == NULL:
            raise MemoryError
        for place, (kind, many) in enumerate(slots):
            self._slots[place].kind, self._slots[place].many = KINDS[kind], many
        said = sorted({(one.namespace, one.local) for one in walk.tests if one.local is not None})
        wanted = sorted({one.namespace for one in walk.tests if one.local is None and one.namespace})
        self._told = [f"{{{one}}}{name}" if one else name for one, name in said]
        self._told += [f"{{{one}}}*" for one in wanted]
        self._told.append("*")
        self._mask = 8
        while self._mask < 3 * len(said):
            self._mask *= 2
        self._names = <NameEntry *>PyMem_Malloc(self._mask * sizeof(NameEntry))
        if self._names == NULL:
            raise MemoryError
        memset(self._names, 0, self._mask * sizeof(NameEntry))
        self._mask -= 1
        for place, (one, name) in enumerate(said):
            local, namespace = name.encode(), one.encode()
            self._kept += [local, namespace]
            at = _hash(PyBytes_AS_STRING(local)) & self._mask
            while self._names[at].local != NULL:
                at = (at + 1) & self._mask
            self._names[at].local = PyBytes_AS_STRING(local)
            self._names[at].namespace = PyBytes_AS_STRING(namespace)
            self._names[at].number = place
        self._family_count = len(wanted)
        self._families = <const char **>PyMem_Malloc(max(1, self._family_count) * sizeof(char *))
        if self._families == NULL:
            raise MemoryError
        for place, one in enumerate(wanted):
            namespace = one.encode()
            self._kept.append(namespace)
            self._families[place] = PyBytes_AS_STRING(namespace)
        self._add(walk.first_place())

    def __dealloc__(self):
        self._forget()
        PyMem_Free(self._places)
        PyMem_Free(self._slots)
        PyMem_Free(self._names)
        PyMem_Free(self._families)

    def __len__(self):
        """How many places it knows."""
        return self._count

    def values(self, _Element root):
        """The value of each path, None for one that finds nothing. None if the long way has to be gone."""
        cdef Going going
        cdef int following, slot
        cdef list results = [None] * self._slot_count
        going.room, going.size, going.characters, going.depth = NULL, 0, 0, 0
        if self._count >= MOST_PLACES and self._under_way == 0:
            self._forget()
            self._add(self._walk.first_place())
        self._under_way += 1
        try:
            following = self._next(0, root._c_node)
            if following >= 0 and not self._element(&going, results, following, root._c_node):
                return None
            if following == UNKNOWN:
                return None
        finally:
            self._under_way -= 1
            PyMem_Free(going.room)
        for slot in range(self._slot_count):
            if self._slots[slot].many and results[slot] is not None:
                results[slot] = tuple(results[slot])
        return results

    # Places

    cdef int _add(self, place) except -1:
        """The number of a place."""
        cdef Place *made
        cdef int at
        cdef bytes local, namespace
        cdef list tests = place.attribute_tests(), names = []
        made = <Place *>PyMem_Malloc(sizeof(Place))
        if made == NULL:
            raise MemoryError
        memset(made, 0, sizeof(Place))
        made.following = <int *>PyMem_Malloc(len(self._told) * sizeof(int))
        if made.following == NULL:
            raise MemoryError
        for at in range(len(self._told)):
            made.following[at] = UNKNOWN
        made.found, made.found_count = _numbers(place.found), len(place.found)
        made.texts, made.texts_count = _numbers(place.texts), len(place.texts)
        made.attributes = <AttributeTest *>PyMem_Malloc(max(1, len(tests)) * sizeof(AttributeTest))
        if made.attributes == NULL:
            raise MemoryError
        for at, (one, name, slot) in enumerate(tests):
            made.attributes[at].local = made.attributes[at].namespace = NULL
            if name is not None:
                local = name.encode()
                names.append(local)
                made.attributes[at].local = PyBytes_AS_STRING(local)
            if one is not None:
                namespace = one.encode()
                names.append(namespace)
                made.attributes[at].namespace = PyBytes_AS_STRING(namespace)
            made.attributes[at].slot = slot
        made.attributes_count = len(tests)
        made.enters = place.children is None or len(place.children) > 0
        if self._count >= MOST_PLACES:
            _free(made)
            return UNKNOWN
        self._objects.append((place, names))
        self._placed[place] = self._count
        self._places[self._count] = made
        self._count += 1
        return self._count - 1

    cdef void _forget(self) noexcept:
        """Forgets all places."""
        cdef int number
        for number in range(self._count):
            _free(self._places[number])
        self._count = 0
        if self._objects is not None:
            self._objects.clear()
            self._placed.clear()

    cdef int _name(self, const xmlNode *element) noexcept:
        """The number of a name: that of all names that paths do not tell apart."""
        cdef const char *local = <const char *>element.name
        cdef const char *namespace = _namespace(element.ns)
        cdef int at = _hash(local) & self._mask
        while self._names[at].local != NULL:
            if strcmp(self._names[at].local, local) == 0 and strcmp(self._names[at].namespace, namespace) == 0:
                return self._names[at].number
            at = (at + 1) & self._mask
        for at in range(self._family_count):
            if strcmp(self._families[at], namespace) == 0:
                return len(self._told) - 1 - self._family_count + at
        return len(self._told) - 1

    cdef int _next(self, int place, const xmlNode *element) except -3:
        """The place to which a child leads, `NOWHERE`, or `UNKNOWN` if there are too many places."""
        cdef int name = self._name(element)
        cdef int following = self._places[place].following[name]
        if following == UNKNOWN:
            found = self._walk.next_place(self._objects[place][0], self._told[name], None)
            if found is None:
                following = NOWHERE
            elif found in self._placed:
                following = self._placed[found]
            else:
                following = self._add(found)
            self._places[place].following[name] = following
        return following

    # Walking. Each says whether the short way still holds.

    cdef bint _element(self, Going *going, list results, int number, const xmlNode *element) except -1:
        cdef Place *place = self._places[number]
        cdef const xmlNode *child
        cdef int at, following
        cdef const char *text
        cdef Py_ssize_t length = 0
        if place.found_count:
            text = self._string(going, element, &length)
            if text == NULL:
                return False
            for at in range(place.found_count):
                if not self._found(going, results, place.found[at], text, length):
                    return False
        if place.attributes_count and not self._attributes(going, results, place, element):
            return False
        if not place.enters:
            return True
        if going.depth > MOST_DEPTH:
            return False
        going.depth += 1
        child = element.children
        while child != NULL:
            if child.type == XML_ELEMENT_NODE:
                following = self._next(number, child)
                if following >= 0:
                    if not self._element(going, results, following, child):
                        return False
                elif following == UNKNOWN:
                    return False
                child = child.next
            elif _is_text(child):
                if place.texts_count:
                    text = self._texts(going, &child, &length)
                    if text == NULL:
                        return False
                    for at in range(place.texts_count):
                        if not self._found(going, results, place.texts[at], text, length):
                            return False
                else:
                    child = child.next
            elif child.type == XML_COMMENT_NODE or child.type == XML_PI_NODE:
                child = child.next
            else:
                return False
        going.depth -= 1
        return True

    cdef bint _attributes(self, Going *going, list results, Place *place, const xmlNode *element) except -1:
        cdef const xmlAttr *attribute = element.properties
        cdef const AttributeTest *test
        cdef const char *text
        cdef int at, before
        while attribute != NULL:
            for at in range(place.attributes_count):
                test = &place.attributes[at]
                if not _passes(test, attribute):
                    continue
                for before in range(at):  # a path that wants it twice has it once
                    if place.attributes[before].slot == test.slot and _passes(&place.attributes[before], attribute):
                        break
                else:
                    if attribute.children == NULL:
                        text = NOTHING
                    elif (
                        attribute.children.next == NULL
                        and attribute.children.type == XML_TEXT_NODE
                        and attribute.children.content != NULL
                    ):
                        text = <const char *>attribute.children.content
                    else:
                        return False
                    if not self._found(going, results, test.slot, text, strlen(text)):
                        return False
            attribute = attribute.next
        return True

    cdef const char *_string(self, Going *going, const xmlNode *element, Py_ssize_t *length) except? NULL:
        """The text within an element. NULL, without an error, where the long way has to be gone."""
        cdef const xmlNode *node = element.children
        cdef Py_ssize_t size = 0
        if node == NULL:
            length[0] = 0
            return NOTHING
        if node.next == NULL and _is_text(node) and node.content != NULL:
            length[0] = strlen(<const char *>node.content)
            return <const char *>node.content
        while True:
            if _is_text(node):
                if not _append(going, node, &size):
                    return NULL
            elif node.type == XML_ELEMENT_NODE:
                if node.children != NULL:
                    node = node.children
                    continue
            elif node.type != XML_COMMENT_NODE and node.type != XML_PI_NODE:
                return NULL
            while node != element and node.next == NULL:
                node = <const xmlNode *>node.parent
            if node == element:
                break
            node = node.next
        going.characters += size  # a string that is put together counts, and so does each value that it becomes
        length[0] = size
        return NOTHING if size == 0 else going.room

    cdef const char *_texts(self, Going *going, const xmlNode **node, Py_ssize_t *length) except? NULL:
        """The text up to the next node that is none, to which it goes on."""
        cdef const xmlNode *one = node[0]
        cdef Py_ssize_t size = 0
        if one.content != NULL and (one.next == NULL or not _is_text(one.next)):
            node[0] = one.next
            length[0] = strlen(<const char *>one.content)
            return <const char *>one.content
        while one != NULL and _is_text(one):
            if not _append(going, one, &size):
                return NULL
            one = one.next
        node[0] = one
        length[0] = size
        return NOTHING if size == 0 else going.room

    cdef bint _found(self, Going *going, list results, int slot, const char *text, Py_ssize_t length) except -1:
        """Adds a value of a path."""
        going.characters += length
        if going.characters > self._most_values:
            return False
        already = results[slot]
        if already is not None and not self._slots[slot].many:
            return False
        value = self._value(self._slots[slot].kind, text, length)
        if value is None:
            return False
        if not self._slots[slot].many:
            results[slot] = value
        elif already is None:
            results[slot] = [value]
        else:
            (<list>already).append(value)
            return len(<list>already) <= self._most_elements
        return True

    cdef object _value(self, int kind, const char *text, Py_ssize_t length):
        """The value that a text is, or None if that is not clear."""
        if kind == STRING:
            return None if length > self._most_string else PyUnicode_DecodeUTF8(text, length, NULL)
        while length and _is_space(text[0]):
            text += 1
            length -= 1
        while length and _is_space(text[length - 1]):
            length -= 1
        if kind == INT:
            return _integer(text, length)
        if kind == FLOAT:
            return _float(text, length)
        if kind == BOOL:
            if length == 4 and memcmp(text, b"true", 4) == 0 or length == 1 and text[0] == c"1":
                return True
            if length == 5 and memcmp(text, b"false", 5) == 0 or length == 1 and text[0] == c"0":
                return False
            return None
        try:
            return self._moment(PyUnicode_DecodeUTF8(text, length, NULL))
        except ValueError:
            return None


cdef inline bint _passes(const AttributeTest *test, const xmlAttr *attribute) noexcept:
    if test.local != NULL and strcmp(test.local, <const char *>attribute.name) != 0:
        return False
    return test.namespace == NULL or strcmp(test.namespace, _namespace(attribute.ns)) == 0


cdef bint _append(Going *going, const xmlNode *text, Py_ssize_t *size) except -1:
    cdef const char *content = <const char *>text.content
    cdef Py_ssize_t more = 0 if content == NULL else strlen(content)
    cdef char *room
    if size[0] + more > going.size:
        room = <char *>PyMem_Realloc(going.room, 2 * (size[0] + more))
        if room == NULL:
            raise MemoryError
        going.room, going.size = room, 2 * (size[0] + more)
    if more:
        memcpy(going.room + size[0], content, more)
        size[0] += more
    return True


cdef object _integer(const char *text, Py_ssize_t length):
    cdef Py_ssize_t at = 0
    cdef bint negative = length > 0 and text[0] == c"-"
    cdef long long number = 0
    if length > 0 and (text[0] == c"-" or text[0] == c"+"):
        at = 1
    if at == length or length - at > MOST_DIGITS:
        return None
    while at < length:
        if not c"0" <= text[at] <= c"9":
            return None
        number = 10 * number + (text[at] - c"0")
        at += 1
    return -number if negative else number


cdef object _float(const char *text, Py_ssize_t length):
    """Decimals of few digits at once; what has more, or an exponent, is read by Python, if it is written so."""
    cdef Py_ssize_t at = 0
    cdef int digits = 0, behind = 0
    cdef bint negative = length > 0 and text[0] == c"-", point = False
    cdef long long number = 0
    cdef double value
    if length > 0 and (text[0] == c"-" or text[0] == c"+"):
        at = 1
    while at < length:
        if text[at] == c"." and not point:
            point = True
        elif c"0" <= text[at] <= c"9":
            digits += 1
            if digits > EXACT_DIGITS:
                return None
            number = 10 * number + (text[at] - c"0")
            behind += point
        else:
            return None
        at += 1
    if digits == 0:
        return None
    value = <double>number / POWERS[behind]
    return -value if negative else value
