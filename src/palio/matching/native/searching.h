/* Texts in texts: one part, and path globs as the parts between their stars.

   Whatever is looked for, no byte of the text is looked at more than some 64 times: a part of up to 64 bytes is compared
   wherever its first and last byte stand, a longer one by a rolling hash (Karp and Rabin).

   A glob is blocks of segments, between which `**` stands for any number of segments; a segment is runs of
   characters, between which `*` stands for any. Both are matched greedily: the first run at the beginning, the last
   one at the end, all others as early as possible, which leaves most for those behind. The same goes for blocks. That
   is wrong for no glob, and needs no memory. A block that may begin anywhere is tried at each segment, so `programs.py`
   writes only those this way whose blocks have few segments; all others are run by their machine (programs.h). */

#ifndef PALIO_SEARCHING_H
#define PALIO_SEARCHING_H

#include "memory.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define COMPARED_MOST 64u
#define ROLLING_BASE UINT64_C(0x9fb21c651e98df25)

/* A part of more than 64 bytes. */
static const uint8_t *text_find_long(const uint8_t *text, const uint8_t *end, const uint8_t *part, uint32_t length,
                                     uint64_t *steps) {
    const uint8_t *last = end - length;
    uint64_t wanted = 0, rolling = 0, power = 1;
    *steps += (uint64_t)(end - text);
    for (uint32_t i = 0; i < length; i++) {
        wanted = wanted * ROLLING_BASE + part[i] + 1;
        rolling = rolling * ROLLING_BASE + text[i] + 1;
        if (i) power *= ROLLING_BASE;
    }
    for (;; text++) {
        if (rolling == wanted && !memcmp(text, part, length)) return text;
        if (text == last) return NULL;
        rolling = (rolling - (text[0] + UINT64_C(1)) * power) * ROLLING_BASE + text[length] + 1;
    }
}

/* The first place from `text` on, and before `stop`, at which a part of at least two bytes has its first two and its last:
   few places are looked at in vain. */
INLINE const uint8_t *next_likely(const uint8_t *text, const uint8_t *stop, const uint8_t *part, uint32_t length) {
#if defined(__SSE2__)
    const __m128i first = _mm_set1_epi8((char)part[0]), second = _mm_set1_epi8((char)part[1]);
    const __m128i last = _mm_set1_epi8((char)part[length - 1]);
    for (; stop - text >= 16; text += 16) {
        const __m128i begins = _mm_cmpeq_epi8(first, _mm_loadu_si128((const __m128i *)text));
        const __m128i goes_on = _mm_cmpeq_epi8(second, _mm_loadu_si128((const __m128i *)(text + 1)));
        const __m128i ends = _mm_cmpeq_epi8(last, _mm_loadu_si128((const __m128i *)(text + length - 1)));
        const unsigned both = (unsigned)_mm_movemask_epi8(_mm_and_si128(_mm_and_si128(begins, goes_on), ends));
        if (both) return text + LOWEST_BIT(both);
    }
#endif
    for (; text < stop; text++)
        if (text[0] == part[0] && text[length - 1] == part[length - 1]) return text;
    return NULL;
}

/* Where a part first stands in a text, or NULL. */
static const uint8_t *text_find(const uint8_t *text, const uint8_t *end, const uint8_t *part, uint32_t length, uint64_t *steps) {
    const uint8_t *stop;
    if (!length) return text;
    if (length > (size_t)(end - text)) return NULL;
    if (length > COMPARED_MOST) return text_find_long(text, end, part, length, steps);
    if (length == 1) return memchr(text, part[0], (size_t)(end - text));
    for (stop = end - length + 1; (text = next_likely(text, stop, part, length)) != NULL; text++) {
        ++*steps;
        if (same_bytes(text, part, length)) return text;
    }
    return NULL;
}

/* A glob as it is written: words, and runs of bytes filled up to whole words. */
typedef struct { const uint8_t *at; } GlobReader;

INLINE uint32_t glob_word(GlobReader *reader) {
    reader->at += 4;
    return load_word(reader->at - 4);
}

INLINE const uint8_t *glob_run(GlobReader *reader, uint32_t *length) {
    const uint8_t *run;
    *length = glob_word(reader);
    run = reader->at;
    reader->at += (*length + 3) / 4 * 4;
    return run;
}

/* Whether a segment of a text is what a segment of a glob says; the reader stands behind that afterwards if it is. */
static int segment_holds(GlobReader *reader, const uint8_t *text, const uint8_t *end, uint64_t *steps) {
    uint32_t runs = glob_word(reader), length;
    const uint8_t *run = glob_run(reader, &length);
    ++*steps;
    if (length > (size_t)(end - text) || !same_bytes(text, run, length)) return 0;
    text += length;
    if (runs == 1) return text == end;
    for (; runs > 2; runs--) {
        run = glob_run(reader, &length);
        text = text_find(text, end, run, length, steps);
        if (!text) return 0;
        text += length;
    }
    run = glob_run(reader, &length);
    return length <= (size_t)(end - text) && same_bytes(end - length, run, length);
}

/* Where the segment that begins at a place of a text ends. */
INLINE const uint8_t *segment_end(const uint8_t *text, const uint8_t *end) {
    const uint8_t *slash = text < end ? memchr(text, '/', (size_t)(end - text)) : NULL;
    return slash ? slash : end;
}

/* The segments of a block at the place where a segment of a text begins. Returns where the next one begins, which is
   one behind the end where there is none left, or NULL. */
static const uint8_t *block_holds(GlobReader *reader, uint32_t segments, const uint8_t *text, const uint8_t *end, uint64_t *steps) {
    for (; segments; segments--) {
        const uint8_t *stop;
        if (text > end) return NULL;
        stop = segment_end(text, end);
        if (!segment_holds(reader, text, stop, steps)) return NULL;
        text = stop + 1;
    }
    return text;
}

/* Whether a path is what a glob says, written as: whether it begins and whether it ends with `**`, how many blocks; for each
   its words, its segments; for each its runs. */
static int path_holds(const uint8_t *glob, const uint8_t *text, uint32_t length, uint64_t *steps) {
    GlobReader reader = {glob};
    const uint32_t open_begin = glob_word(&reader), open_end = glob_word(&reader), blocks = glob_word(&reader);
    const uint8_t *end = text + length;
    *steps += length / COMPARED_MOST;
    for (uint32_t number = 0; number < blocks; number++) {
        const uint32_t words = glob_word(&reader), segments = glob_word(&reader);
        const GlobReader block = reader;
        GlobReader trying = block;
        reader.at = block.at + 4 * (size_t)words;
        if (!number && !open_begin) {
            text = block_holds(&trying, segments, text, end, steps);
            if (!text) return 0;
            if (blocks == 1 && !open_end) return text > end;
        } else if (number + 1 == blocks && !open_end) { /* as many segments as it has, from the end */
            const uint8_t *start = end;
            if (text > end) return 0;
            for (uint32_t left = segments;; start--) {
                while (start > text && start[-1] != '/') start--;
                if (!--left) break;
                if (start <= text) return 0;
            }
            return block_holds(&trying, segments, start, end, steps) != NULL;
        } else {
            const uint8_t *found = NULL;
            for (; text <= end; text = segment_end(text, end) + 1) {
                trying = block;
                found = block_holds(&trying, segments, text, end, steps);
                if (found) break;
            }
            if (!found) return 0;
            text = found;
        }
    }
    return 1;
}

#endif
