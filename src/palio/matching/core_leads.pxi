# Leads: interned values by which a side is found that is neither an equality nor a range, as far as it has any.

# A lead is (kind, text as bytes) or (kind, number or bool); of an element of a list, the kind has KIND_ELEMENT.
cdef Py_ssize_t LEADS_MOST = 4  # of one side, all of which have to hold
cdef Py_ssize_t STRETCHES_MOST = 4  # of numbers, for each of which a conjunction is filed if it has nothing else
cdef Py_ssize_t PART = PART_MOST  # with a sign
cdef tuple TEXT_CODECS = (("utf-8", "surrogatepass"), ("latin-1", "strict"))


cdef bytes _raw(int kind, str text):
    return text.encode(*TEXT_CODECS[kind == KIND_BYTES])


cdef int _lead_value(tuple lead, Value *value) except -1:
    """A lead as a value of the core; its text stays the lead's."""
    cdef int kind = lead[0]
    cdef bytes raw
    if type(lead[1]) is not bytes:
        _value(lead[1], value)
        value.kind |= <uint32_t>(kind & KIND_ELEMENT)
        return 0
    raw = <bytes>lead[1]
    value.kind = <uint32_t>kind
    value.text = <const uint8_t *>PyBytes_AS_STRING(raw)
    value.length = <uint32_t>PyBytes_GET_SIZE(raw)
    return 0


cdef list _text_leads(int kind, known, bint *exact):
    """What a text must have of which this is known: several to choose from, or the one that says all.

    In the latter case a second one, with None before it, may say what it must not have.
    """
    cdef int beginning = KIND_PREFIX if kind == KIND_STRING else KIND_BYTES_PREFIX
    cdef list found = []
    cdef bytes raw
    exact[0] = known.exact
    if known.folded:
        return [(KIND_FOLDED, _raw(kind, known.folded))]
    if known.prefix:
        raw = _raw(kind, known.prefix)
        exact[0] = exact[0] and len(raw) <= PART
        found.append((beginning, raw[:PART]))
    if known.suffix:
        raw = _raw(kind, known.suffix)
        exact[0] = exact[0] and len(raw) <= PART
        found.append((beginning + 1, raw[max(0, len(raw) - PART) :]))
    for factor in known.factors:
        raw = _raw(kind, factor)
        if len(raw) > PART:  # parts from all over it, of which one may be rare
            exact[0] = False
            for place in range(0, len(raw) - PART + 1, max(1, (len(raw) - PART) // 3)):
                found.append((beginning + 2, raw[place : place + PART]))
        elif exact[0] or len(raw) >= LEAST_FACTOR:
            found.append((beginning + 2, raw))
    if exact[0] and known.without:
        found += [None, (beginning + 2, _raw(kind, known.without))]
    return found


cdef list _one_of_leads(int kind, known):
    """Leads of which a text must have one, of which this is known; None if there are none such."""
    cdef int place
    if not known.one_of:
        return None
    if known.place == "whole":
        return [(kind, _raw(kind, one)) for one in known.one_of]
    place = (KIND_PREFIX if kind == KIND_STRING else KIND_BYTES_PREFIX) + ("begins", "ends", "within").index(known.place)
    found = [_raw(kind, one) for one in known.one_of]
    return [(place, one[max(0, len(one) - PART) :] if known.place == "ends" else one[:PART]) for one in found]


cdef tuple _element_range(elements):
    """The range of numbers that an element has to lie in, and whether that is all that is asked; or None."""
    cdef Value value
    cdef double low = 0, high = 0
    cdef int view = -1
    if _side(<tuple>elements.parts, &value, &low, &high, &view) != RANGE or view == VIEW_TIME:
        return None
    return low, high, view < 0 and (low == -INFINITY or high == INFINITY)


cdef tuple _conditions(int kind, tree, bint *exact):
    """What all values of a tree have to satisfy: questions that must be answered with yes, and what is left behind them."""
    cdef list asked = []
    exact[0] = True
    while type(tree) is _DecisionNode:
        if not tree.no:
            asked.append(tree.atom)
            tree = tree.yes
        elif not tree.yes:
            exact[0] = False
            tree = tree.no
        else:
            exact[0] = False
            break
    return asked, tree


cdef list _stretch_leads(int kind, tuple ends):
    """One for each stretch of texts: itself if it is one value, or how all of its texts begin; None if one has none."""
    cdef list found = []
    cdef Py_ssize_t at, length
    if not ends or len(ends) % 2 or len(ends) > 2 * FILED_VALUES:
        return None
    for at in range(0, len(ends), 2):
        low, high = ends[at], ends[at + 1]
        if high == low + "\0":
            found.append((kind, _raw(kind, low)))
            continue
        if ends[at : at + 2] == _constraint.prefix(kind, low):
            length = len(low)
        else:
            length = 0
            while length < len(low) and low[length] == high[length]:
                length += 1
        if not length:
            return None
        found.append((KIND_PREFIX if kind == KIND_STRING else KIND_BYTES_PREFIX, _raw(kind, low[:length])[:PART]))
    return found


cdef list _alternatives(int kind, tree):
    """Leads of which every value of a tree has at least one; None if there are none such."""
    cdef bint exact = False
    cdef list leads
    if type(tree) is tuple:
        if not tree:
            return []
        return _stretch_leads(kind, <tuple>tree) if kind == KIND_STRING or kind == KIND_BYTES else None
    found = []
    if tree.yes:
        if kind == KIND_LIST:
            leads = _element_alternatives(tree.atom)
        else:
            known = _literals(tree.atom)
            leads = _best(_text_leads(kind, known, &exact), exact) or _one_of_leads(kind, known)
        if leads is None:
            leads = _alternatives(kind, tree.yes)
        if leads is None:
            return None
        found += leads
    leads = _alternatives(kind, tree.no)
    return None if leads is None else found + leads


cdef list _best(list leads, bint exact):
    """Of leads that all have to hold the longest, as a list of one; None if there is none."""
    if not leads:
        return None
    return [leads[0] if exact else max(leads, key=_lead_length)]


def _lead_length(lead):
    return len(lead[1])


cdef list _element_alternatives(atom):
    """Leads of which an element has at least one if it is what a list has to have; None if there are none such."""
    leads = _value_alternatives(<tuple>atom.elements.parts)
    return None if leads is None else [(kind | KIND_ELEMENT, value) for kind, value in leads]


cdef list _value_alternatives(tuple parts):
    """Leads of which every value has at least one that is in these parts; None if there are none such."""
    cdef list found = [], leads
    cdef int kind
    if parts[KIND_TIME]:
        return None
    if parts[KIND_BOOL]:
        if parts[KIND_BOOL] == _EVERYTHING[KIND_BOOL]:
            return None
        found.append((KIND_BOOL, len(parts[KIND_BOOL]) == 1))
    if parts[KIND_INT] or parts[KIND_FLOAT]:
        points = _number_points(parts)
        if points is None:
            return None
        found += [(KIND_FLOAT, point) for point in points]
    for kind in (KIND_STRING, KIND_BYTES, KIND_LIST):
        leads = _alternatives(kind, parts[kind])
        if leads is None:
            return None
        found += leads
    return found if 0 < len(found) <= FILED_VALUES else None


def _number_points(tuple parts):
    """The few numbers of a set that has no others, whatever else is in it; or None."""
    cdef tuple ends = <tuple>parts[KIND_FLOAT]
    if not ends or len(ends) % 2 or len(ends) > 2 * FILED_VALUES:
        return None
    found = ends[::2]
    if ends != _flips.points(KIND_FLOAT, found) or not all(abs(one) < EXACT for one in found):
        return None
    whole = [int(one) for one in found if one.is_integer()]
    return found if parts[KIND_INT] == _flips.points(KIND_INT, whole) else None


cdef list _forbidden(tuple parts):
    """The leads that no value may have, and all others are in the set; None if it is another one."""
    cdef list found = []
    cdef int kind
    cdef bint exact = False
    if parts[KIND_TIME] != _EVERYTHING[KIND_TIME] or not parts[KIND_BOOL]:
        return None
    if parts[KIND_BOOL] != _EVERYTHING[KIND_BOOL]:
        found.append((KIND_BOOL, len(parts[KIND_BOOL]) > 1))  # only false is in the set, or only true
    if parts[KIND_FLOAT] != _EVERYTHING[KIND_FLOAT] or parts[KIND_INT] != _EVERYTHING[KIND_INT]:
        points = _number_points(
            (None, _flips.complement(KIND_INT, parts[KIND_INT]), _flips.complement(KIND_FLOAT, parts[KIND_FLOAT]))
        )
        if points is None:
            return None
        found += [(KIND_FLOAT, point) for point in points]
    for kind in (KIND_STRING, KIND_BYTES, KIND_LIST):
        part = parts[kind]
        if part == _EVERYTHING[kind]:
            continue
        if type(part) is tuple:
            if kind == KIND_LIST:
                return None
            ends = _flips.complement(kind, part)
            if not ends or len(ends) % 2 or len(ends) > 2 * FILED_VALUES or ends != _flips.points(kind, ends[::2]):
                return None
            found += [(kind, _raw(kind, one)) for one in ends[::2]]
            continue
        if part.yes or part.no != _EVERYTHING[kind]:
            return None
        if kind == KIND_LIST:
            leads = _exact_element(part.atom)
            if leads is None:
                return None
        else:
            leads = _text_leads(kind, _literals(part.atom), &exact)
            if not exact or len(leads) != 1:
                return None
        found += leads
    return found if len(found) <= FILED_VALUES else None


cdef list _stretches(tuple parts):
    """The few ranges of plain numbers that a set is, each as (low, high); None if it is another one, or one range only."""
    cdef tuple ends = <tuple>parts[KIND_FLOAT], integers = <tuple>parts[KIND_INT]
    cdef list found = []
    cdef Py_ssize_t at
    cdef double low, high
    if not 2 < len(ends) <= 2 * STRETCHES_MOST or parts[KIND_BOOL] or parts[KIND_TIME]:
        return None
    if parts[KIND_STRING] or parts[KIND_BYTES] or parts[KIND_LIST]:
        return None
    for at in range(0, len(ends), 2):
        low, high = ends[at], ends[at + 1] if at + 1 < len(ends) else INFINITY
        if low == FLOAT_LEAST:
            low = -INFINITY
        for size in (2, 1, 0):  # as many ends of ints belong to it
            if _is_one_stretch(low, high, integers[:size]):
                break
        else:
            return None
        integers = integers[size:]
        found.append((low, high))
    return None if integers else found


cdef list _exact_element(atom):
    """The one lead that says of an element all that is asked, as a list; or None."""
    cdef tuple parts = <tuple>atom.elements.parts
    cdef list leads = _value_alternatives(parts), asked
    cdef bint exact = False
    if leads is None or len(leads) != 1:
        return None
    kind, value = leads[0]
    if kind == KIND_STRING or kind == KIND_BYTES or kind == KIND_BOOL or kind == KIND_FLOAT:
        return [(kind | KIND_ELEMENT, value)]
    kind = KIND_STRING if parts[KIND_STRING] else KIND_BYTES
    part = parts[kind]
    if type(part) is tuple:
        if part != _constraint.prefix(kind, part[0]) or len(_raw(kind, part[0])) > PART:
            return None
        return [(leads[0][0] | KIND_ELEMENT, value)]
    if part.no or part.yes != _EVERYTHING[kind]:
        return None
    leads = _text_leads(kind, _literals(part.atom), &exact)
    return [(leads[0][0] | KIND_ELEMENT, leads[0][1])] if exact and len(leads) == 1 else None
