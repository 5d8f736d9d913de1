# Of which sort a side of a conjunction is: what can be looked up, what can be swept, and what has to be run.

# An `in` with at most so many values is filed once for each.
cdef Py_ssize_t FILED_VALUES = 16
cdef double EXACT = 9007199254740992.0  # 2**53
cdef double FLOAT_LEAST = -math.nextafter(math.inf, 0.0)
TIME_LEAST = microseconds(TIME_MIN)


cdef enum Sort:
    EQUALITY
    RANGE
    SEVERAL
    PROGRAM


def _by_length(entry):
    return len(entry[0])


cdef Sort _side(tuple parts, Value *value, double *low, double *high, int *view) except *:
    """Of which sort a side is that does not allow absence, and its value or its range, in a view if that is not -1."""
    cdef int kinds = 0, kind
    cdef tuple ends, integers
    view[0] = -1
    for kind in range(7):
        part = parts[kind]
        if type(part) is not tuple:
            return PROGRAM
        if <tuple>part:
            kinds |= 1 << kind
    if kinds == 1 << KIND_STRING:
        ends = <tuple>parts[KIND_STRING]
        if len(ends) == 2:
            if ends[1] == ends[0] + "\0":
                _value(ends[0], value)
                return EQUALITY
            return _prefix(ends, value)
        return SEVERAL if _points(parts) is not None else PROGRAM
    if kinds == 1 << KIND_BOOL:
        ends = <tuple>parts[KIND_BOOL]
        if len(ends) == 1 and ends[0] is False:
            return PROGRAM
        _value(len(ends) == 1, value)
        return EQUALITY
    if kinds == 1 << KIND_TIME or kinds == 1 << KIND_INT:
        view[0] = VIEW_TIME if kinds == 1 << KIND_TIME else VIEW_INT
        return _counted(<tuple>parts[KIND_TIME if kinds == 1 << KIND_TIME else KIND_INT], low, high)
    if kinds & ~(1 << KIND_INT | 1 << KIND_FLOAT) or not kinds & 1 << KIND_FLOAT:
        return PROGRAM
    ends = <tuple>parts[KIND_FLOAT]
    integers = <tuple>parts[KIND_INT]
    if len(ends) > 2:
        return SEVERAL if _points(parts) is not None else PROGRAM
    low[0] = <double>ends[0]
    high[0] = <double>ends[1] if len(ends) == 2 else INFINITY
    if low[0] == FLOAT_LEAST:
        low[0] = -INFINITY
    if not _is_one_stretch(low[0], high[0], integers):
        view[0] = VIEW_FLOAT
        return PROGRAM if integers else RANGE
    if high[0] == nextafter(low[0], INFINITY):
        _value(<object>low[0], value)
        return EQUALITY
    return RANGE


cdef Sort _prefix(tuple ends, Value *value) except *:
    """A stretch of strings: all that begin with a text, or something else."""
    if ends != _constraint.prefix(KIND_STRING, ends[0]):
        return PROGRAM
    _value(ends[0], value)
    if not 0 < value.length <= PART_MOST:
        return PROGRAM
    value.kind = KIND_PREFIX
    return EQUALITY


cdef Sort _counted(tuple ends, double *low, double *high) except *:
    """Ints or times of a demanded type, as a range of numbers that are exact."""
    if len(ends) > 2:
        return PROGRAM
    first, least = ends[0], INT64_MIN
    last = ends[1] if len(ends) == 2 else None
    if type(first) is datetime:
        first, least = microseconds(first), TIME_LEAST
        last = None if last is None else microseconds(last)
    low[0], high[0] = -INFINITY, INFINITY
    if first != least:
        low[0] = <double>first
        if not -EXACT < low[0] < EXACT:
            return PROGRAM
    if last is not None:
        high[0] = <double>last
        if not -EXACT < high[0] < EXACT:
            return PROGRAM
    return RANGE


cdef bint _is_one_stretch(double low, double high, tuple integers) except *:
    """Whether the integers of a set are those between its floats' ends, and the ends are exact for both."""
    cdef int64_t first = INT64_MIN, stop = 0
    if low != -INFINITY:
        if not -EXACT < low < EXACT:
            return False
        first = <int64_t>ceil(low)
    if high == INFINITY:
        return len(integers) == 1 and _is(integers[0], first)
    if not -EXACT < high < EXACT:
        return False
    stop = <int64_t>ceil(high)
    if first >= stop:
        return not integers
    return len(integers) == 2 and _is(integers[0], first) and _is(integers[1], stop)


cdef bint _is(number, int64_t expected) except *:
    """Whether an int is this one."""
    cdef int overflow
    return PyLong_AsLongLongAndOverflow(number, &overflow) == expected and not overflow


def _points(tuple parts):
    """The few values of a set that is nothing but these, or None."""
    cdef tuple ends = <tuple>parts[KIND_STRING]
    if ends:
        if len(ends) % 2 or len(ends) > 2 * FILED_VALUES:
            return None
        found = ends[::2]
        return found if ends == _flips.points(KIND_STRING, found) and len(set(found)) * 2 == len(ends) else None
    ends = <tuple>parts[KIND_FLOAT]
    if len(ends) % 2 or len(ends) > 2 * FILED_VALUES:
        return None
    found = ends[::2]
    if ends != _flips.points(KIND_FLOAT, found) or not all(abs(one) < EXACT for one in found):
        return None
    whole = [int(one) for one in found if one.is_integer()]
    return found if parts[KIND_INT] == _flips.points(KIND_INT, whole) else None
