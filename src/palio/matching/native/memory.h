/* Memory of the index: growing arrays, and an arena of 32-bit words addressed by offset.

   Everything that refers to something else does so by number, never by pointer, so that an index can be written
   to a file as it stands and be mapped anywhere. An arena gives out runs of words and takes them back; what is
   free waits in a list for its size. Offset 0 is never given out and stands for nothing.

   Running out of memory ends the process, as it ends most programs on systems that overcommit anyway. */

#ifndef PALIO_MEMORY_H
#define PALIO_MEMORY_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

/* Wider vectors and better bit instructions where the machine has them: hot functions are compiled twice, and
   which one runs is decided when the module is loaded. The build itself is for the baseline of the architecture. */
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && !defined(PALIO_PLAIN)
#define WIDE __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))
#define WIDE_IS_SUPPORTED() (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt"))
#include <immintrin.h>
/* Machines that take the places of set bits out of a word at once. */
#define WIDEST __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,avx2,bmi,bmi2,popcnt,lzcnt")))
#define WIDEST_IS_SUPPORTED() \
    (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi2"))
#endif

#if defined(__GNUC__) || defined(__clang__)
#define PREFETCH(address) __builtin_prefetch(address)
#define PREFETCH_WRITE(address) __builtin_prefetch(address, 1)
#define PREFETCH_SECOND(address) __builtin_prefetch(address, 0, 2) /* to the second cache: more of these can be on their way */
#define LOWEST_BIT(word) ((unsigned)__builtin_ctzll(word))
#define BITS_SET(word) ((unsigned)__builtin_popcountll(word))
#define INLINE static inline __attribute__((always_inline))
#define MAYBE_UNUSED __attribute__((unused))
/* Counters that several readers touch at once: a lost count is fine, a data race is not. */
#define COUNT_UP(counter) __atomic_store_n(&(counter), __atomic_load_n(&(counter), __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED)
#else
#define PREFETCH(address) ((void)0)
#define PREFETCH_WRITE(address) ((void)0)
#define PREFETCH_SECOND(address) ((void)0)
#define INLINE static inline
#define MAYBE_UNUSED
#define COUNT_UP(counter) ((counter)++)
static inline unsigned BITS_SET(uint64_t word) {
    unsigned bits = 0;
    for (; word; word &= word - 1) bits++;
    return bits;
}
static inline unsigned LOWEST_BIT(uint64_t word) {
    unsigned bit = 0;
    while (!(word & 1)) { word >>= 1; bit++; }
    return bit;
}
#endif

static void out_of_memory(void) {
    fputs("palio: out of memory\n", stderr);
    abort();
}

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) out_of_memory();
    return memory;
}

static void *allocate_zeroed(size_t bytes) {
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory) out_of_memory();
    return memory;
}

#define HUGE_PAGE ((size_t)1 << 21)

/* Memory that begins on a cache line. Much of it begins on a huge page: whoever jumps about in it otherwise spends
   as long on looking up addresses as on waiting for what is there. */
static void *allocate_pages(size_t bytes) {
    void *memory = NULL;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (bytes >= HUGE_PAGE) {
        if (posix_memalign(&memory, HUGE_PAGE, bytes)) out_of_memory();
        madvise(memory, bytes / 4096 * 4096, MADV_HUGEPAGE);
        return memory;
    }
#endif
    memory = aligned_alloc(64, (bytes ? bytes + 63 : 64) / 64 * 64);
    if (!memory) out_of_memory();
    return memory;
}

/* Large arrays grow into pages of their own, all others as usual. */
static void *grow_to(void *memory, size_t *capacity, size_t needed, size_t item) {
    const size_t before = *capacity * item;
    size_t wanted = *capacity + *capacity / 2 + 16;
    if (wanted < needed) wanted = needed;
    *capacity = wanted;
    if (wanted * item >= HUGE_PAGE) {
        void *pages = allocate_pages(wanted * item);
        if (before) memcpy(pages, memory, before);
        free(memory);
        return pages;
    }
    memory = realloc(memory, wanted * item);
    if (!memory) out_of_memory();
    return memory;
}

/* Whether two runs of bytes are the same. Most have a few: to call the library's takes longer than to look. */
INLINE int same_bytes(const void *left, const void *right, size_t length) {
    const uint8_t *one = left, *other = right;
    uint64_t a, b;
    uint32_t c, d;
    if (length >= 8) {
        for (size_t at = 0; at + 8 < length; at += 8) {
            memcpy(&a, one + at, 8);
            memcpy(&b, other + at, 8);
            if (a != b) return 0;
        }
        memcpy(&a, one + length - 8, 8);
        memcpy(&b, other + length - 8, 8);
        return a == b;
    }
    if (length >= 4) {
        uint32_t e, f;
        memcpy(&c, one, 4);
        memcpy(&d, other, 4);
        memcpy(&e, one + length - 4, 4);
        memcpy(&f, other + length - 4, 4);
        return (c == d) & (e == f);
    }
    while (length--)
        if (one[length] != other[length]) return 0;
    return 1;
}

/* How many events of a batch are matched together. */
#ifndef TILE
#define TILE 256u
#endif

#define VECTOR(type) struct { type *items; size_t count, capacity; }
#define RESERVE(vector, needed) do { \
        size_t reserve_needed = (needed); \
        if (reserve_needed > (vector).capacity) \
            (vector).items = grow_to((vector).items, &(vector).capacity, reserve_needed, sizeof *(vector).items); \
    } while (0)
#define PUSH(vector, value) do { \
        RESERVE(vector, (vector).count + 1); \
        (vector).items[(vector).count++] = (value); \
    } while (0)
#define RELEASE(vector) do { free((vector).items); (vector).items = NULL; (vector).count = (vector).capacity = 0; } while (0)

typedef VECTOR(uint32_t) Words;

/* Sizes up to ARENA_EXACT words have a free list each; greater ones are rounded up to a quarter of a power of two. */
#define ARENA_EXACT 64
#define ARENA_LISTS (ARENA_EXACT + 1 + 4 * 26)

typedef struct {
    Words words;
    uint32_t free_lists[ARENA_LISTS];
    uint64_t free_words;
} Arena;

static unsigned arena_list(uint32_t size, uint32_t *rounded) {
    unsigned power = 6;
    uint32_t quarter, steps;
    if (size <= ARENA_EXACT) {
        *rounded = size ? size : 1;
        return *rounded;
    }
    while (power < 30 && ((uint32_t)1 << (power + 1)) < size) power++;
    quarter = (uint32_t)1 << (power - 2);
    steps = (size - ((uint32_t)1 << power) + quarter - 1) / quarter; /* 1 to 4 */
    *rounded = ((uint32_t)1 << power) + steps * quarter;
    return ARENA_EXACT + 1 + 4 * (power - 6) + (steps - 1);
}

static uint32_t arena_take(Arena *arena, uint32_t size) {
    uint32_t rounded, offset;
    unsigned list = arena_list(size, &rounded);
    offset = arena->free_lists[list];
    if (offset) {
        arena->free_lists[list] = arena->words.items[offset];
        arena->free_words -= rounded;
        return offset;
    }
    if (!arena->words.count) PUSH(arena->words, 0);
    if (arena->words.count + rounded > UINT32_MAX) out_of_memory();
    RESERVE(arena->words, arena->words.count + rounded);
    offset = (uint32_t)arena->words.count;
    arena->words.count += rounded;
    return offset;
}

/* How many words a request for this many really gets. */
static uint32_t arena_rounded(uint32_t size) {
    uint32_t rounded;
    arena_list(size, &rounded);
    return rounded;
}

static void arena_give_back(Arena *arena, uint32_t offset, uint32_t size) {
    uint32_t rounded;
    unsigned list = arena_list(size, &rounded);
    arena->words.items[offset] = arena->free_lists[list];
    arena->free_lists[list] = offset;
    arena->free_words += rounded;
}

INLINE double load_double(const void *from) {
    double value;
    memcpy(&value, from, sizeof value);
    return value;
}

INLINE int64_t load_integer(const void *from) {
    int64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

INLINE uint64_t load_bits(const void *from) {
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Eight bytes of a text, the first in the lowest place whatever the machine's order. */
INLINE uint64_t load_gram(const void *from) {
    uint64_t value = load_bits(from);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

INLINE uint32_t load_word(const void *from) {
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

#endif
